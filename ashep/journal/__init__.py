r"""The journal: what was decided and why, durable before anything acts on it.

Never: what a record means; `ashep.core.facts` declares it, and the core folds it.

`state/journal/<first sequence number, 12 digits>.jsonl` holds lines `<json>\t<crc32 as 8 hex digits>\n`. Every line
carries `v`, `seq`, `at` and `type`; the CRC is zlib's over the bytes before the tab. There are three kinds of line:

* a file's first line, `JournalFile`: `previous` names the file before it, `hash` is the SHA-256 of that file's bytes
  (both null in the first one);
* the entries of a batch, as `ashep.core.facts.records` writes them;
* the batch's `Commit`: `count` entries and `crc`, zlib's CRC over all bytes of their lines.

**Numbers.** Every line takes the next sequence number, without a gap: 1 is the first file's first line, a commit takes
the number after its last entry. Whoever appends numbers its entries from `Journal.next_seq` on, so an entry's number
(a run's trace id, a posture's `seq`) is known before it is written; it counts for nothing until the batch is durable,
and a batch that was cut gives its numbers to the next one.

**Files.** The next file is begun once one has `Sizes.file` bytes, right after a batch. So a start reads the last file
line by line and compares those before it with the hash in the next one's header. Old files move to `archive/`.

**Snapshots.** They are written next to the work and are pictures; a start takes the newest good one and the tail.

**Recovery.** A batch is written by one `write()` and begun only when the one before it is durable. So what follows the
last complete batch is at most one batch that was never acknowledged: it is cut. A bad line that is followed by the
commit of a later batch cannot come from an interrupted write, and stops the daemon (`JournalDamaged`).

Modules: `framing` (one line), `reader`, `writer`, `hash_chain` (what is sealed), `heads`, `archive`, `prune` (what goes
from it), `snapshots`, `snapshot_writer` (when one is due), `verify`, `blobs` (texts by their hash), `durable_io` (files
that last), `disk_reserve`, `lock` (one writer; it imports nothing heavy).
"""
