"""A month of work in virtual time, and what another policy would have done in it: by ashep, and by a recount."""
