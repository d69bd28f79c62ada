"""The report: results as pages to read, a crate to deposit, citations to paste."""
