"""An issue's course: where an outcome leads, people first, and how facts change a flow. No run is started here."""
