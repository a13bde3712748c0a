"""Columns of a table as inputs: numbers, texts and dates, in the fit and later."""

import io
import json
import zipfile
from datetime import date, datetime

import numpy as np
import pytest

from wienerkernel import FormatError, WienerKernelRegressor, load
from wienerkernel.io.columns import Column, ColumnReader, columns_of
from wienerkernel.io.tables import MissingValueError
from wienerkernel.io.tables.csv_file import CsvTable

TABLE = """n,color,flag,day,time
1,red,True,2024-01-01,2024-03-01 10:00:00
2.5,blue,False,2024-01-11,2024-03-01 12:30:00
3,green,True,2024-03-01,2024-03-01T14:00:00
4,blue,True,2024-01-02,2024-03-01 15:00
5,red,False,2024-01-02,2024-03-01 10:15
6,green,False,2023-12-31,2024-03-01 10:00
"""


def read(text, names, size=1000):
    reader = ColumnReader(names, 1e100)
    for chunk in CsvTable("d.csv", io.StringIO(text)).chunks(size):
        reader.add(chunk)
    return reader.result()


def chunk_of(text):
    return next(CsvTable("d.csv", io.StringIO(text)).chunks())


@pytest.mark.parametrize("size", [1000, 4])
def test_texts_are_one_hot_and_dates_elapsed_time(size):
    columns, X = read(TABLE, ["n", "color", "flag", "day", "time"], size)
    names = [name for column in columns for name in column.features]
    assert names == [
        "n",
        "color=blue",
        "color=green",
        "color=red",
        "flag=True",
        "day (days since 2023-12-31)",
        "time (hours since 2024-03-01 10:00:00)",
    ]
    np.testing.assert_array_equal(X[:, 0], [1, 2.5, 3, 4, 5, 6])
    np.testing.assert_array_equal(X[:, 1:4].argmax(axis=1), [2, 0, 1, 0, 2, 1])
    np.testing.assert_array_equal(X[:, 1:4].sum(axis=1), 1)
    np.testing.assert_array_equal(X[:, 4], [1, 0, 1, 1, 0, 0])
    start = date(2023, 12, 31)
    days = [date(2024, 1, 1), date(2024, 1, 11), date(2024, 3, 1), date(2024, 1, 2), date(2024, 1, 2), start]
    np.testing.assert_array_equal(X[:, 5], [(day - start).days for day in days])
    np.testing.assert_allclose(X[:, 6], [0, 2.5, 4, 5, 0.25, 0])


def test_other_tables_are_encoded_as_the_first_one_was():
    names = ["n", "color", "flag", "day", "time"]
    columns, X = read(TABLE, names)
    chunk = chunk_of(TABLE)
    np.testing.assert_array_equal(np.concatenate([c.encode(chunk, 1e9) for c in columns], axis=1), X)
    later = chunk_of("n,color,flag,day,time\n1,blue,False,2025-12-31,2024-03-02 10:00\n")
    encoded = np.concatenate([column.encode(later, 1e9) for column in columns], axis=1)
    assert encoded.tolist() == [[1, 1, 0, 0, 0, 731, 24]]
    pink = chunk_of("color\nred\npink\n")
    with pytest.raises(
        ValueError, match=r"d.csv, row 3, column 'color': 'pink' is not among .* blue, green, red"
    ):
        columns[1].encode(pink, 1e9)


def test_inputs_are_shown_as_cells_again():
    columns, X = read(TABLE, ["color", "flag", "day", "n"])
    at = np.cumsum([0, *(len(column.features) for column in columns)])
    for row, line in zip(X, TABLE.splitlines()[1:], strict=True):
        n, color, flag, day, _ = line.split(",")
        cells = [column.text(row[at[k] : at[k + 1]]) for k, column in enumerate(columns)]
        assert cells == [color, flag, day, n]
    assert columns[3].text([19.622], 1) == "19.6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x\n1\n2\ntwo\n", "row 4, column 'x': 'two' is not a number"),
        (
            "x;y\n1,5;1\n1,5;1\n2,5;1\n2,5;1\n",
            "row 2, column 'x': '1,5' is not a number; use a decimal point",
        ),
        ("x\n1_000\n2_000\n1_000\n2_000\n", "row 2, column 'x': '1_000' is not a number; use the digits"),
        ("x\n5%\n5%\n7%\n7%\n", "row 2, column 'x': '5%' is not a number; leave out the percent sign"),
        ("x\n31.12.2024\n31.12.2024\n1.2.2024\n1.2.2024\n", "write dates as 2024-12-31"),
        ("x\n12/31/2024\n12/31/2024\n1/2/2024\n1/2/2024\n", "write dates as 2024-12-31"),
        ("x\na\nb\nc\n", "'x' has 3 different texts in 3 rows, such as 'a'"),
        ("x\na\na\n", "the text 'a' in all rows"),
        ("x\n2024-01-01\n2024-13-01\n", "row 3, column 'x': '2024-13-01' is not a date such as"),
        ("x\n2024-01-01\n2024-01-01 10:00+02:00\n", "time zone"),
    ],
)
def test_mistakes_are_not_taken_for_texts(text, message):
    with pytest.raises(ValueError, match=message):
        read(text, ["x"])


@pytest.mark.parametrize("cell", ["", " ", "NA", "nan", "NaN", "null", "None", "n/a"])
@pytest.mark.parametrize("others", ["1\n2\n", "red\nblue\n", "2024-01-01\n"])
def test_cells_without_a_value_are_refused_or_left_out(cell, others):
    text = f'x,y\n{others.replace(chr(10), ",0" + chr(10))}"{cell}",0\n'
    with pytest.raises(MissingValueError, match=f"row {others.count(chr(10)) + 2}, column 'x'"):
        read(text, ["x"])
    complete = chunk_of(text).complete(["y", "x"])
    assert len(complete) == others.count("\n")
    assert complete.columns["y"] == ("0",) * len(complete)
    assert len(chunk_of(text).complete(["y"])) == len(complete) + 1


def test_rows_keep_their_numbers_when_others_are_left_out():
    chunk = chunk_of("x\n1\nNA\nfour\n").complete(["x"])
    with pytest.raises(ValueError, match="row 4, column 'x': 'four'"):
        chunk.numbers(["x"])


def test_parquet_has_texts_dates_and_gaps_too(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from wienerkernel.io.tables import open_table

    columns = {
        "color": ["red", "blue", None, "blue", "red"],
        "flag": [True, False, True, True, False],
        "time": [datetime(2024, 1, 1, 12), datetime(2024, 1, 5), datetime(2024, 1, 1), datetime(2024, 1, 9), datetime(2024, 1, 1)],
        "x": [1.0, np.nan, 3.0, 4.0, 5.0],
    }  # fmt: skip
    parquet.write_table(pyarrow.table(columns), tmp_path / "d.parquet")
    with open_table(tmp_path / "d.parquet") as table:
        chunk = next(table.chunks())
    for name in ("color", "x"):
        with pytest.raises(MissingValueError, match=f"row {3 if name == 'color' else 2}, column {name!r}"):
            chunk.texts(name) if name == "color" else chunk.numbers([name])
    kept = chunk.complete(["color", "x"])
    reader = ColumnReader(["color", "flag", "time", "x"], 1e9)
    reader.add(kept)
    found, X = reader.result()
    assert [column.kind for column in found] == ["category", "category", "date", "number"]
    np.testing.assert_array_equal(X, [[1, 1, 0.5, 1], [0, 1, 8, 4], [1, 0, 0, 5]])
    with pytest.raises(ValueError, match="row 5"):
        raise kept.error(2, "x", "")


def test_columns_are_saved_with_the_model(tmp_path):
    columns, X = read(TABLE, ["color", "day"])
    model = WienerKernelRegressor(tuning=None).fit(X, np.arange(6.0))
    model.save(tmp_path / "plain.wk")
    assert not hasattr(load(tmp_path / "plain.wk"), "columns_")
    model.columns_ = columns
    model.save(tmp_path / "m.wk")
    assert load(tmp_path / "m.wk").columns_ == columns
    assert columns_of(load(tmp_path / "m.wk"), []) == columns
    assert columns_of(load(tmp_path / "plain.wk"), ["a", "b"]) == [Column("a"), Column("b")]


@pytest.mark.parametrize(
    "change",
    [
        {"type": "secret"},
        {"type": "number"},
        {"levels": []},
        {"levels": ["a", "a"]},
        {"levels": ["a", 1]},
        {"unit": "days"},
        {"origin": "2024-01-01"},
        {"name": 3},
        {"type": "date", "levels": [], "unit": "days", "origin": "yesterday"},
        {"type": "date", "levels": [], "unit": "years", "origin": "2024-01-01"},
    ],
)
def test_absurd_columns_in_a_file_are_refused(change, tmp_path):
    model = WienerKernelRegressor(tuning=None).fit([[0.0], [1.0]], [0.0, 1.0])
    model.columns_ = [Column("color", "category", ("a", "b"))]
    model.save(tmp_path / "m.wk")
    with zipfile.ZipFile(tmp_path / "m.wk") as old:
        members = {name: old.read(name) for name in old.namelist()}
    tree = json.loads(members["model.json"])
    (column,) = tree["columns"]
    for columns in ([{**column, **change}], [column, column], "color"):
        with zipfile.ZipFile(tmp_path / "bad.wk", "w") as new:
            for name, content in members.items():
                text = json.dumps({**tree, "columns": columns}).encode() if name == "model.json" else content
                new.writestr(zipfile.ZipInfo(name), text)
        with pytest.raises(FormatError, match=r"column|date|isoformat"):
            load(tmp_path / "bad.wk")
