"""Programs that follow a view: a web server, and a worker that mirrors it into SQLite."""
