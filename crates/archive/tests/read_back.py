"""Reads Parquet files with pyarrow or DuckDB and prints what is in them: a line about them, then a line for each row."""

import json
import sys


def with_pyarrow(path):
    import pyarrow.parquet as parquet

    file = parquet.ParquetFile(path)
    groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
    compressions = sorted({group.column(n).compression for group in groups for n in range(group.num_columns)})
    types = {field.name: str(field.type) for field in file.schema_arrow}
    yield {"rows": file.metadata.num_rows, "compressions": compressions, "types": types}
    for batch in file.iter_batches():
        yield from batch.to_pylist()


def with_duckdb(paths):
    """Takes a pattern as well, such as archive/**/*.parquet."""
    import duckdb

    def ask(what):
        return duckdb.execute(what.format("'" + paths.replace("'", "''") + "'")).fetchall()

    compressions = [name for (name,) in ask("SELECT DISTINCT compression FROM parquet_metadata({}) ORDER BY 1")]
    types = {name: kind for (name, kind, *_) in ask("DESCRIBE SELECT * FROM {}")}
    ((rows,),) = ask("SELECT count(*) FROM {}")
    yield {"rows": rows, "compressions": compressions, "types": types}
    for row in ask("SELECT * FROM {}"):
        yield dict(zip(types, row))


read = {"pyarrow": with_pyarrow, "duckdb": with_duckdb}[sys.argv[1]]
for line in read(sys.argv[2]):
    print(json.dumps(line))
