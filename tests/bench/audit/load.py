from tests.bench.audit.row import Row

ROWS: tuple[Row, ...] = ()
