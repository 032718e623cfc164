"""Makes pages of docs/ from the code: none of it is shipped."""
