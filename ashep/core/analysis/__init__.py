"""What reads the journal and judges: account, audit, replay, soundness, what another policy had done. It decides nothing."""
