"""Tables of the command line: reading, guessing, encoding, and what their errors say."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trueline.errors import TableError
from trueline.table import Column, Encoding, Table, encode, guess_kind, guess_task, read_table


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiter_is_found(tmp_path, delimiter, newline):
    lines = ["name,size,y", "Anna,1.5,2", "Bo,2.5,4"]
    text = newline.join(lines).replace(",", delimiter)
    table = read_table(write(tmp_path / "a.csv", text))
    assert list(table.columns) == ["name", "size", "y"]
    assert table.delimiter == delimiter
    assert table.column("size").numbers.tolist() == [1.5, 2.5]


def test_quotes_byte_order_mark_blank_lines_and_gzip(tmp_path):
    text = '\ufeffcity,"the size"\n"Paris, France",1\n\n"two\nlines",2\n"a ""quote""",3\n'
    plain = read_table(write(tmp_path / "a.csv", text))
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    packed = read_table(tmp_path / "a.csv.gz")
    for table in (plain, packed):
        assert list(table.columns) == ["city", "the size"]
        assert table.column("city").cells == ["Paris, France", "two\nlines", 'a "quote"']
        assert list(table.column("city").lines) == [2, 5, 6]


def test_decimal_commas_only_between_semicolons(tmp_path):
    table = read_table(write(tmp_path / "a.csv", "a;b\n1,5;2\n,5;\n"))
    np.testing.assert_array_equal(table.column("a").numbers, [1.5, 0.5])
    np.testing.assert_array_equal(table.column("b").numbers, [2.0, np.nan])
    table = read_table(write(tmp_path / "b.csv", 'a,b\n"1,5",2\n"2,5",3\n'))
    assert table.column("a").numbers is None


def test_file_longer_than_the_sample(tmp_path):
    rows = "\n".join(f'{i},"text {i}, with a comma"' for i in range(5000))
    table = read_table(write(tmp_path / "a.csv", f"id,words\n{rows}\n"))
    assert table.n_rows == 5000
    assert table.column("words").cells[-1] == "text 4999, with a comma"
    assert table.column("id").numbers.sum() == sum(range(5000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ("a,b\n", "no rows"),
        ("a,b\n1,2\n1,2,3\n", r"line 3: 3 values, but the header names 2"),
        ("a,b\n1,2\n\n1\n", r"line 4: 1 values, but the header names 2"),
        ("a,b,a\n1,2,3\n", "'a' more than once"),
        ("1,2\n3,4\n", "seems to have no header"),
        ('a,b\n1,"2\n', "cannot be read as CSV"),
        ("a,b\n1,\0\n", "zero bytes"),
    ],
)
def test_bad_files_say_what_is_wrong(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        read_table(write(tmp_path / "a.csv", text))


def test_wrong_kinds_of_file(tmp_path):
    with pytest.raises(TableError, match="not UTF-8"):
        read_table(write(tmp_path / "a.csv", "caf\xe9,y\n1,2\n", "latin-1"))
    with pytest.raises(TableError, match="UTF-16"):
        read_table(write(tmp_path / "b.csv", "a,y\n1,2\n", "utf-16"))
    (tmp_path / "c.xlsx").write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(TableError, match="Excel"):
        read_table(tmp_path / "c.xlsx")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"a,y\n1,2\n" * 99)[:-12])
    with pytest.raises(TableError, match="cannot be read"):
        read_table(tmp_path / "d.csv.gz")
    with pytest.raises(TableError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(TableError, match=r"no file .*Did you mean .*a\.csv"):
        read_table(tmp_path / "aa.csv")


@pytest.mark.parametrize(
    ("cells", "kind", "reason"),
    [
        (["1", "2", "3"], "number", "1 to 3"),
        (["1", "", "NA", "2"], "number", "1 to 2"),
        (["1e3", " 2 ", "-.5"], "number", "-0.5 to 1000"),
        (["yes", "no", "Yes", ""], "boolean", "no / yes"),
        (["True", "False"], "boolean", "false / true"),
        (["a", "b", "a", "b"], "category", "2 levels: a, b"),
        (["x", "x"], "constant", "always x"),
        (["7", "7", ""], "constant", "always 7"),
        (["", "NA"], "empty", "no values"),
        (["a", "b", "c"], "identifier", "every value"),
        (["2024-01-05", "2024-01-06", "2024-02-01"], "date", "2024-01-05 to 2024-02-01"),
        ([*"123456789", "ten"], "text", "numbers, but for 'ten' in row 10"),
        (["1_000", "2_000", "3_000", "3_000"], "text", "3 different values"),
        ([str(i % 150) + "x" for i in range(300)], "text", "150 different values in 300 rows"),
    ],
)
def test_kinds(cells, kind, reason):
    guess = guess_kind(Column("c", cells))
    assert guess.kind == kind
    assert reason in guess.reason


def test_row_numbers_are_identifiers_by_name_only():
    assert guess_kind(Column("id", ["1", "2", "3"])).kind == "identifier"
    assert guess_kind(Column("year", ["1", "2", "3"])).kind == "number"
    assert guess_kind(Column("id", ["3", "1", "7"])).kind == "number"


@pytest.mark.parametrize(
    ("cells", "task"),
    [
        (["1", "2", "3"], "regression"),
        (["0", "1", "1"], "classification"),
        (["yes", "no"], "classification"),
        (["a", "b", "c"], "classification"),
    ],
)
def test_task(cells, task):
    assert guess_task(Column("y", cells)).kind == task


@pytest.fixture
def people():
    return Table.from_columns(
        {
            "id": ["1", "2", "3", "4", "5", "6"],
            "city": ["Rome", "Oslo", "Paris", "Rome", "Oslo", "Paris"],
            "smoker": ["yes", "no", "No", "YES", "no", "no"],
            "age": ["30", "40", "", "50", "60", "70"],
            "country": ["X"] * 6,
            "y": ["1", "2", "3", "4.5", "NA", "6"],
        },
        "people.csv",
    )


def test_encode(people):
    encoded = encode(people, "y", missing="drop")
    assert encoded.names == ["city=Paris", "city=Rome", "smoker=yes", "age"]
    np.testing.assert_array_equal(
        encoded.X, [[0, 1, 1, 30], [0, 0, 0, 40], [0, 1, 1, 50], [1, 0, 0, 70]]
    )
    np.testing.assert_array_equal(encoded.y, [1, 2, 4.5, 6])
    assert encoded.kept.tolist() == [True, True, False, True, False, True]
    assert encoded.notes == [
        "id left out: identifier (row numbers)",
        "country left out: constant (always X)",
        "2 of 6 rows left out: values are missing (y 1, age 1)",
    ]


def test_missing_values_are_filled_in_and_marked(people):
    encoded = encode(people, "y")
    assert encoded.names == ["city=Paris", "city=Rome", "smoker=yes", "age", "age is missing"]
    assert encoded.kept.tolist() == [True, True, True, True, False, True]
    np.testing.assert_array_equal(encoded.X[2], [1, 0, 0, 50, 1])
    np.testing.assert_array_equal(encoded.X[[0, 1, 3, 4], 4], 0)
    assert np.isnan(people.column("age").numbers[2])  # the table stays as it was
    assert encoded.notes[2:] == [
        "values are missing, filled in and marked by columns: age 1",
        "1 of 6 rows left out: values are missing (y 1)",
    ]


@pytest.mark.parametrize(
    ("values", "filled"),
    [
        (["1", "", "5", "3"], [3.0, 1.0]),
        (["yes", "NA", "no", "yes"], [0.0, 1.0]),
        (["a", "", "b", "c"], [0.0, 0.0, 1.0]),
        (["2020-01-01", "", "2020-01-03", "2020-01-02"], None),
    ],
)
def test_each_kind_of_column_is_filled_in(values, filled):
    columns = {"x": values * 5, "y": [str(i % 7) for i in range(20)]}
    encoded = encode(Table.from_columns(columns), "y")
    row, known = encoded.X[1], np.delete(encoded.X[:4], 1, axis=0)
    assert row[-1] == 1
    assert encoded.names[-1] == "x is missing"
    np.testing.assert_allclose(
        row, [*known[:, :-1].mean(axis=0), 1.0] if filled is None else filled
    )


def test_a_gap_that_was_not_there_when_fitting_leaves_its_row_without_a_prediction(people):
    encoding = encode(people, "y").encoding
    table = Table.from_columns(
        {"city": ["Rome", ""], "smoker": ["no", "no"], "age": ["", "20"], "y": ["", ""]}
    )
    X, complete = encoding.design(table)
    assert complete.tolist() == [True, False]
    assert X[0, 3:].tolist() == [50.0, 1.0]


def test_encoding_is_plain_data_and_applies_to_other_tables(people):
    encoding = encode(people, "y", missing="drop").encoding
    again = Encoding.from_dict(encoding.to_dict())
    assert again == encoding
    # One row alone would be guessed as constants: the encoding decides, not the guess.
    one = Table.from_columns({"city": ["Oslo"], "smoker": ["Yes"], "age": ["33"], "y": ["1"]})
    X, complete = again.design(one)
    np.testing.assert_array_equal(X, [[0, 0, 1, 33]])
    assert complete.all()
    filled = encode(people, "y").encoding
    assert Encoding.from_dict(filled.to_dict()) == filled
    np.testing.assert_array_equal(filled.design(one)[0], [[0, 0, 1, 33, 0]])


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("city", "Lima", "'city' holds 'Lima' .*row 1.* It knows 3 values: Oslo, Paris, Rome"),
        ("smoker", "maybe", "'smoker' holds 'maybe'"),
        ("age", "old", "'age' should hold numbers: 'old' in row 1"),
        ("age", "inf", "'age' is infinite in row 1"),
    ],
)
def test_unknown_values_are_named(people, column, value, message):
    encoding = encode(people, "y").encoding
    cells = {"city": ["Oslo"], "smoker": ["no"], "age": ["33"]} | {column: [value]}
    with pytest.raises(TableError, match=message):
        encoding.design(Table.from_columns(cells))


def test_columns_are_chosen(people):
    assert encode(people, "y", features=["age"]).names == ["age", "age is missing"]
    assert encode(people, "y", drop=["city", "smoker", "age"], categories=["id"]).names[0] == "id=2"
    assert encode(people, "y", features=["id"], categories=["id"]).names[0] == "id=2"


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("Y", {}, "no column 'Y'. Did you mean 'y'?"),
        ("weight", {}, "no column 'weight'. It has: id, city"),
        ("y", {"features": ["agee"]}, "Did you mean 'age'?"),
        ("y", {"features": ["y"]}, "cannot be a feature as well"),
        ("y", {"features": ["id"]}, "'id' cannot be a feature: identifier, row numbers"),
        ("y", {"features": ["country"]}, "no column to predict 'y' from"),
        ("city", {"task": "regression"}, "'city' is not numeric: 'Rome' in row 1"),
    ],
)
def test_bad_requests_say_what_to_do(people, target, options, message):
    with pytest.raises(TableError) as caught:
        encode(people, target, **options)
    assert message in str(caught.value)


def test_a_target_in_two_currencies_is_refused_by_name():
    table = Table.from_columns({"a": ["1", "2", "3"], "y": ["$5", "\u20ac6", "$7"]})
    with pytest.raises(TableError, match="'y' is not numeric: its values have several units"):
        encode(table, "y", task="regression")


def test_no_complete_row():
    table = Table.from_columns(
        {"a": ["1", "2", "", ""], "b": ["", "", "1", "2"], "y": list("1234")}
    )
    with pytest.raises(TableError, match="No row of the table is complete.*b 2, a 2"):
        encode(table, "y", missing="drop")
    assert encode(table, "y").kept.all()


def test_classes_as_target(people):
    encoded = encode(people, "city", features=["id"], categories=["id"])
    assert encoded.encoding.task == "classification"
    assert encoded.y.tolist() == ["Rome", "Oslo", "Paris", "Rome", "Oslo", "Paris"]


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_a_table_or_a_table_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("any") / "a.csv"
    path.write_bytes(data)
    try:
        table = read_table(path)
    except TableError:
        return
    assert all(len(column.cells) == table.n_rows for column in table.columns.values())
    for name in table.columns:
        assert table.guess(name)


# --- numbers and dates as people write them -----------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "numbers", "unit"),
    [
        (["$4,733", "$12", "NA"], [4733.0, 12.0, np.nan], "$"),
        (["-$1,250.50", "$-3", "($7)", "+$2"], [-1250.5, -3.0, -7.0, 2.0], "$"),
        (["12 \u20ac", "\u20ac3"], [12.0, 3.0], "\u20ac"),
        (["\u00a35", "1,000"], [5.0, 1000.0], "\u00a3"),
        (["12%", "-0.5 %"], [12.0, -0.5], "%"),
        (["1,234,567", "12"], [1234567.0, 12.0], ""),
        (["1'234.5", "1\u00a0000"], [1234.5, 1000.0], ""),
    ],
)
def test_money_percents_and_separated_thousands_are_numbers(cells, numbers, unit):
    column = Column("c", cells)
    np.testing.assert_array_equal(column.numbers, numbers)
    assert column.unit == unit
    assert guess_kind(column).kind == "number"


@pytest.mark.parametrize(
    "cells",
    [
        ["$5", "\u20ac5"],  # two currencies
        ["12%", "0.12"],  # percents and shares
        ["1,23", "4"],  # no group of three
        ["12,34,567", "1"],
        ["1,234.567,8", "1"],
        ["$", "%"],
        ["4,733 dollars", "1"],
        ["--5", "1"],
    ],
)
def test_what_is_not_a_number_is_not_made_one(cells):
    assert Column("c", cells).numbers is None


def test_dots_separate_thousands_where_commas_are_decimal():
    column = Column("c", ["1.234,5", "12"], decimal_comma=True)
    assert column.numbers.tolist() == [1234.5, 12.0]


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["2024-05-31", "2024-06-01"], "ymd"),
        (["2024-05-31 18:30", "2024-06-01T07:00:05"], "ymd"),
        (["31/05/2024", "01/06/2024"], "dmy"),
        (["05/31/2024 9:15", "06/01/2024 10:00"], "mdy"),
    ],
)
def test_dates_become_features_as_those_of_table_features(texts, order):
    import pandas as pd

    from trueline import TableFeatures

    cells = texts * 5
    table = Table.from_columns({"when": cells, "y": [str(i % 7) for i in range(len(cells))]})
    encoded = encode(table, "y")
    form = {"ymd": "ISO8601", "dmy": "%d/%m/%Y", "mdy": "%m/%d/%Y %H:%M"}[order]
    frame = pd.DataFrame({"when": pd.to_datetime(pd.Series(cells), format=form)})
    features = TableFeatures(sparse_threshold=0.0).fit(frame)
    names = list(features.get_feature_names_out())
    assert encoded.names == [name for name in names if not name.endswith("Monday")]
    expected = features.transform(frame)[:, [names.index(name) for name in encoded.names]]
    np.testing.assert_allclose(encoded.X, expected, rtol=0, atol=1e-12)
    again = Encoding.from_dict(encoded.encoding.to_dict())
    np.testing.assert_array_equal(again.apply(table)[0], encoded.X)


def test_dates_that_nobody_can_tell_are_not_used():
    guess = guess_kind(Column("when", [f"0{d}/0{m}/2024" for d in range(1, 9) for m in (1, 2, 3)]))
    assert guess.kind == "text"
    assert "cannot be told apart" in guess.reason
    assert guess_kind(Column("when", ["2024-02-30", "2024-02-31", "2024-03-01"])).kind != "date"


def test_another_form_of_date_is_refused_by_name():
    table = Table.from_columns({"when": ["2024-05-31", "2024-06-01"] * 2, "y": list("1234")})
    other = Table.from_columns({"when": ["2024-05-31", "soon"], "y": list("12")})
    with pytest.raises(TableError, match="'when' holds 'soon' \\(row 2\\), which is not a date"):
        encode(table, "y").encoding.apply(other)
