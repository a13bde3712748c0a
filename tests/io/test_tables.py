"""Tables: what is read is what was written, and a mistake in a file is named with its place."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wienerkernel.io.tables import open_table, read_numbers, table_writer
from wienerkernel.io.tables.csv_file import CsvTable
from wienerkernel.text import number

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(folder, text, name="data.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def numbers(path, *names):
    with open_table(path) as table:
        return read_numbers(table, names or table.names)


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1,2\n3,4\n",
        "x;y\r\n1;2\r\n3;4\r\n",
        "x\ty\n1\t2\n3\t4",
        "\ufeffx,y\n1,2\n\n3,4\n\n",
        '"x","y"\n"1","2"\n 3 , 4.0e0 \n',
        " x , y \n1,2\n3,4\n",
    ],
)
def test_the_usual_dialects_of_csv_are_read(text, tmp_path):
    assert numbers(write(tmp_path, text), "x", "y").tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_columns_come_in_the_order_they_are_asked_for(tmp_path):
    assert numbers(write(tmp_path, "a,b,c\n1,2,3\n"), "c", "a").tolist() == [[3.0, 1.0]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,2\n3,abc\n", r"data.csv, row 3, column 'y': 'abc' is not a number$"),
        ("x,y\n1,2\n\n3,\n", r"row 4, column 'y': the cell is empty"),
        ("x,y\n1,2 kg\n", r"'2 kg' is not a number; write numbers without a unit$"),
        ("x,y\n1,2\nNA,3\n", r"row 3, column 'x': 'NA' is not a number; every row needs a value here"),
        ("x,y\n1,nan\n", r"row 2, column 'y': nan is not a finite number"),
        ("x,y\n-inf,1\n", r"row 2, column 'x': -inf is not a finite number"),
        ('x,y\n1,"2,500"\n', r"'2,500' is not a number; write 2500 or 2.500, whichever is meant"),
        ("x;y\n1;0,500\n", r"'0,500' is not a number; use a decimal point"),
        ("x;y\n1;2,5\n", r"row 2, column 'y': '2,5' is not a number; use a decimal point"),
        ("x,y\n1,2,3\n", r"row 2: 3 cells, but there are 2 columns"),
        ("x,y\n1\n", r"row 2: 1 cells"),
        ("", r"is empty; the first row"),
        ("\n\n", r"is empty; the first row"),
        ("x,y\n", r"no rows below"),
        ("1,2\n3,4\n", r"first row must hold the column names, got 1, 2"),
        ("x,x\n1,2\n", r"two columns are named 'x'"),
        ("x,z\n1,2\n", r"there is no column 'y'; the columns are x, z"),
        (b"x,y\n1,\xff\xfe\n", r"not UTF-8 text"),
        ("x,y\n1,2\n".encode("utf-16"), r"not UTF-8 text; if it is a CSV file, save it"),
        ("größe,y\n1,2\n".encode("latin-1"), r"not UTF-8 text; if it is a CSV file, save it"),
        ("x,y\n1,2\n".encode("utf-16-le"), r"control characters in a column name, 'x\\x00'"),
        ("x\x1b[31m,y\n1,2\n", r"control characters in a column name"),
        (b"PK\x03\x04,y\n1,2\n", r"control characters in a column name"),
        ("x,y\n\0,2\n", r"row 2, column 'x': '\\x00' is not a number"),
        (b"\x89PNG\r\n\x1a\n\xff", r"not UTF-8 text"),
        ("x,y\n1," + "9" * 200_000, r"not a CSV file: field larger"),
    ],
)
def test_mistakes_are_named_with_file_row_and_column(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        numbers(write(tmp_path, text), "x", "y")


def test_a_hundred_thousand_columns_are_read_and_not_listed(tmp_path):
    names = [f"c{k}" for k in range(100_000)]
    path = write(tmp_path, f"{','.join(names)}\n{','.join(['1'] * 100_000)}\n")
    assert numbers(path, "c3", "c99999").tolist() == [[1.0, 1.0]]
    with pytest.raises(
        ValueError, match=r"no column 'y'; the columns are c0, .* \(100000 in all\)$"
    ) as caught:
        numbers(path, "y")
    assert len(str(caught.value)) < 500


def test_names_of_columns_may_have_line_breaks_and_any_letters(tmp_path):
    assert numbers(write(tmp_path, '"x\n(m)",😀,[/b]\n1,2,3\n'), "x\n(m)", "😀", "[/b]").tolist() == [
        [1, 2, 3]
    ]


def test_row_numbers_are_right_beyond_the_first_chunk(tmp_path):
    rows = [f"{k},{k}" for k in range(5000)]
    rows[4321] = "4321,oops"
    with pytest.raises(ValueError, match="row 4323, column 'y': 'oops'"):
        numbers(write(tmp_path, "x,y\n" + "\n".join(rows)), "x", "y")


def test_large_tables_come_in_chunks_and_tell_how_far_they_are(tmp_path):
    path = write(tmp_path, "x\n" + "1.5\n" * 50_000)
    with open_table(path) as table:
        fractions, sizes = zip(*((table.fraction, len(chunk)) for chunk in table.chunks(10_000)), strict=True)
    assert sizes == (10_000,) * 5
    assert np.all(np.diff(fractions) >= 0)
    assert 0 < fractions[0] < 0.5
    assert fractions[-1] == 1


def test_standard_input_and_output_are_tables_of_csv(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("\ufeffx,note\n1,a\n2,b\n"))
    with open_table("-") as table, table_writer("-") as writer:
        assert table.fraction is None
        for chunk in table.chunks():
            writer.write({**chunk.columns, "double": 2 * chunk.numbers(["x"])[:, 0]})
    assert capsys.readouterr().out == "x,note,double\n1,a,2.0\n2,b,4.0\n"


READ_STANDARD_INPUT = """
from wienerkernel.io.tables import open_table, read_numbers
try:
    with open_table("-") as table:
        print(ascii(table.names), read_numbers(table, ["y"]).tolist())
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"x,y\n1,2\n", "['x', 'y'] [[2.0]]"),
        (b"\xef\xbb\xbfx,y\r\n1,2\r\n3,4\r\n", "['x', 'y'] [[2.0], [4.0]]"),
        (b"x,y\r1,2\r", "['x', 'y'] [[2.0]]"),
        ("größe,y\n1,2\n".encode(), r"['gr\xf6\xdfe', 'y'] [[2.0]]"),
        ("größe,y\n1,2\n".encode("latin-1"), "standard input is not UTF-8 text"),
        (b"", "standard input is empty"),
        (None, "standard input is closed"),
    ],
)
def test_standard_input_is_read_like_a_file_whatever_the_locale(content, shown):
    command = [sys.executable, "-c", READ_STANDARD_INPUT]
    if content is None:
        command = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    locale = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = subprocess.run(command, input=content, capture_output=True, env=locale, check=False)
    assert result.stdout.decode().startswith(shown), result.stderr


def test_a_closed_standard_output_is_said(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(ValueError, match="standard output is closed"), table_writer("-"):
        pass


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@settings(deadline=None)  # importing pyarrow takes a while
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_numbers_survive_a_file_to_the_last_bit(tmp_path_factory, suffix, values):
    path = tmp_path_factory.mktemp("table") / f"table{suffix}"
    with table_writer(path) as writer:
        writer.write({"x": np.array(values)})
    assert numbers(path)[:, 0].tobytes() == np.array(values).tobytes()


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\r")), min_size=1, max_size=9
    )
)
def test_texts_survive_a_csv_file(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("table") / "table.csv"
    with table_writer(path) as writer:
        writer.write({"k": np.arange(len(texts)), "text": texts})
    with open_table(path) as table:
        assert [cell for chunk in table.chunks() for cell in chunk.columns["text"]] == texts


def test_parquet_keeps_the_columns_that_are_not_numbers(tmp_path):
    source = pyarrow.table(
        {
            "x": pyarrow.array([1, 2], "int32"),
            "when": pyarrow.array([0, 1], "timestamp[ms]"),
            "s": ["a", None],
        }
    )
    parquet.write_table(source, tmp_path / "a.parquet")
    with open_table(tmp_path / "a.parquet") as table, table_writer(tmp_path / "b.parquet") as writer:
        for chunk in table.chunks():
            writer.write({**chunk.columns, "y": chunk.numbers(["x"])[:, 0]})
    result = parquet.read_table(tmp_path / "b.parquet")
    assert result.drop_columns("y").equals(source)
    assert result["y"].to_pylist() == [1.0, 2.0]


def test_formats_can_be_mixed(tmp_path):
    write(tmp_path, "x,s\n1,a\n2,b\n")
    for old, new in (("data.csv", "a.pq"), ("a.pq", "b.csv")):
        with open_table(tmp_path / old) as table, table_writer(tmp_path / new) as writer:
            for chunk in table.chunks():
                writer.write(
                    {**chunk.columns, "x": chunk.numbers(["x"])[:, 0]} if old == "data.csv" else chunk.columns
                )
    assert (tmp_path / "b.csv").read_text() == "x,s\n1.0,a\n2.0,b\n"


def test_parquet_is_read_by_row_groups_with_row_numbers(tmp_path):
    x = np.arange(5000.0)
    x[4000] = np.nan
    parquet.write_table(pyarrow.table({"x": x}), tmp_path / "a.parquet", row_group_size=1000)
    with pytest.raises(ValueError, match="row 4001, column 'x': nan is not a finite number"):
        numbers(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "column 'x': string is not a numeric type"),
        ([1.0, None], "row 2, column 'x': the cell is empty"),
        ([True, False], "bool is not a numeric type"),
    ],
)
def test_parquet_columns_that_are_not_numbers_are_refused(values, message, tmp_path):
    parquet.write_table(pyarrow.table({"x": values}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        numbers(tmp_path / "a.parquet")


def test_parquet_columns_of_one_name_are_refused(tmp_path):
    table = pyarrow.Table.from_arrays([pyarrow.array([1.0]), pyarrow.array([2.0])], ["x", "x"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="two columns are named 'x'"):
        numbers(tmp_path / "a.parquet")


def test_files_that_are_not_parquet_are_refused(tmp_path):
    for content in (b"", b"x,y\n1,2\n", b"PAR1" + b"\x00" * 50 + b"PAR1"):
        with pytest.raises(ValueError, match="is not a Parquet file"):
            numbers(write(tmp_path, content, "a.parquet"))


def test_a_missing_package_for_parquet_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"pip install 'wienerkernel\[parquet\]'"):
        numbers(write(tmp_path, "", "a.parquet"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_is_atomic_write_or_not_at_all(suffix, tmp_path):
    path = tmp_path / f"table{suffix}"

    def fails_halfway():
        with table_writer(path) as writer:
            writer.write({"x": np.zeros(3)})
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power"):
        fails_halfway()
    assert list(tmp_path.iterdir()) == []


NOT_NUMBERS = [
    "1_000",
    "1__0",
    "٣",
    "１２",
    "1٫5",
    "0x10",
    "1e",
    ".",
    "",
    "--1",
    "1 000",
    "1'000",
    "½",
    "1e٣",
    "ınf",
    "1_0e5",
]


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_texts_that_only_python_takes_for_numbers_are_none(text, tmp_path):
    with pytest.raises(ValueError, match="is not a number"):
        number(text, special=True)
    with pytest.raises(ValueError, match=r"data.csv, row 3, column 'x': .*(number|value)"):
        numbers(write(tmp_path, f'x,y\n1,2\n"{text}",3\n'), "x")


@given(st.text(st.sampled_from("0123456789+-._eE \tinfaINFATY٣ \xa0\x1c"), max_size=9))
def test_cells_of_a_table_follow_the_rule_for_all_texts(cell):
    table = CsvTable("a.csv", io.StringIO(f'x,y\n"{cell}",1\n'))
    try:
        expected = number(cell, special=True)
    except ValueError:
        expected = np.nan
    if np.isfinite(expected):
        assert read_numbers(table, ["x"]).tolist() == [[expected]]
    else:
        with pytest.raises(ValueError, match="row 2, column 'x'"):
            read_numbers(table, ["x"])


@given(st.floats(allow_nan=False))
def test_whatever_python_prints_is_a_number(value):
    assert np.array(number(repr(value), special=True)).tobytes() == np.array(value).tobytes()


def test_infinities_are_numbers_only_where_they_are_wanted():
    assert number("-Infinity", special=True) == -np.inf
    assert np.isnan(number("NaN", special=True))
    for text in ("inf", "nan", "-Infinity"):
        with pytest.raises(ValueError, match="is not a number"):
            number(text)
