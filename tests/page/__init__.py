"""The page in a real browser: Playwright drives a Chromium that is there. Where none is, these tests say so."""
