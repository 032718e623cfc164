"""`ashep setup`, from what it finds to the first landed issue."""
