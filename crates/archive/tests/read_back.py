"""Reads a Parquet file with pyarrow and prints what is in it: a line about the file, then a line for each row."""

import json
import sys

import pyarrow.parquet as parquet

file = parquet.ParquetFile(sys.argv[1])
groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
compressions = sorted({group.column(n).compression for group in groups for n in range(group.num_columns)})
types = {field.name: str(field.type) for field in file.schema_arrow}
print(json.dumps({"rows": file.metadata.num_rows, "compressions": compressions, "types": types}))
for batch in file.iter_batches():
    for row in batch.to_pylist():
        print(json.dumps(row))
