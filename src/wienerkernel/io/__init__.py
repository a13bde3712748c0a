"""Models as files, and tables of data as CSV and Parquet."""
