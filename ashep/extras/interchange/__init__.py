"""Policies and flows in the forms of other set-ups.

What comes in becomes a policy that means the same, and the other way round. Never: a rule that only such a form needs.
Nothing is dropped silently: whatever has no counterpart here is a `Note` with its key, line and reason.

`state_names` gives the states and events of a transition table their names (without pydantic: a reader uses it),
`transition_table` reads and writes such tables and has the one of the preset multi-tier, `policy_tables` turns them
into policies and back, `session_state` tells a flow as a session state. `webboty` (with `webboty_policies`) and
`symphony` (with `liquid`) read other set-ups' files by `typed_fields`, `foreman_plugin` takes a plugin's configuration
over, and `prompts` makes templates of what agents are told there. `import_report` is what an import leaves behind,
`yaml_writer` the YAML of it.
"""
