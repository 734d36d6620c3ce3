//! Apache Parquet, by the `parquet` crate without Arrow. Row groups have a fixed number of rows, so memory does not grow
//! with the table.

use super::model::Model;
use super::tables::schema::Kind;
use super::tables::{self, Cell, Sink, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// Rows in a group, which then has some megabytes.
const ROWS: usize = 1 << 16;

/// The feature is on.
pub const IS_BUILT_IN: bool = true;

/// Writes a table.
pub fn write(model: &Model<'_>, table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let mut file = Parquet::new(table, out)?;
    tables::write(model, table, &mut file)?;
    file.finish()
}

/// Writes rows as Parquet.
struct Parquet<'w> {
    out: &'w mut dyn Write,
    written: Bytes,
    file: SerializedFileWriter<Bytes>,
    columns: Vec<Column>,
    rows: usize,
}

/// Bytes that the crate has written and that were not yet passed on: the crate wants a writer of its own.
#[derive(Clone, Default)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Write for Bytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Values of a column that are not yet written; `levels` has for each row whether it has a value.
struct Column {
    levels: Vec<i16>,
    values: Values,
}

enum Values {
    Texts(Vec<ByteArray>),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
}

impl Column {
    fn new(kind: Kind) -> Column {
        let values = match kind {
            Kind::Text => Values::Texts(Vec::new()),
            Kind::Int => Values::Ints(Vec::new()),
            Kind::Float => Values::Floats(Vec::new()),
            Kind::Bool => Values::Bools(Vec::new()),
        };
        Column { levels: Vec::new(), values }
    }

    /// Adds a cell. One of another kind than the column's counts as missing.
    fn push(&mut self, cell: &Cell<'_>) {
        let is_there = match (&mut self.values, cell) {
            (Values::Texts(texts), Cell::Text(text)) => {
                texts.push(ByteArray::from(text.as_bytes().to_vec()));
                true
            }
            (Values::Ints(ints), Cell::Int(int)) => {
                ints.push(*int);
                true
            }
            (Values::Floats(floats), Cell::Float(float)) => {
                floats.push(*float);
                true
            }
            (Values::Bools(bools), Cell::Bool(bool)) => {
                bools.push(*bool);
                true
            }
            _ => false,
        };
        self.levels.push(i16::from(is_there));
    }
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let fields = table.columns.iter().map(|(name, kind)| {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Int => (Physical::INT64, None),
            Kind::Float => (Physical::DOUBLE, None),
            Kind::Bool => (Physical::BOOLEAN, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(logical).build().map(Arc::new)
    });
    Type::group_type_builder(table.name).with_fields(fields.collect::<Result<_, _>>()?).build()
}

impl<'w> Parquet<'w> {
    /// A writer for this table.
    fn new(table: &Table, out: &'w mut dyn Write) -> io::Result<Parquet<'w>> {
        let written = Bytes::default();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(schema(table).map_err(io::Error::other)?);
        let file = SerializedFileWriter::new(written.clone(), schema, Arc::new(properties));
        let columns = table.columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Parquet { out, written, file: file.map_err(io::Error::other)?, columns, rows: 0 })
    }

    /// Writes the last rows, and the file's index.
    fn finish(mut self) -> io::Result<()> {
        self.group()?;
        self.file.finish().map_err(io::Error::other)?;
        self.pass_on()
    }

    fn group(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.rows = 0;
        write_group(&mut self.file, &mut self.columns).map_err(io::Error::other)?;
        self.pass_on()
    }

    fn pass_on(&mut self) -> io::Result<()> {
        let bytes =
            std::mem::take(&mut *self.written.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        self.out.write_all(&bytes)
    }
}

fn write_group(file: &mut SerializedFileWriter<Bytes>, columns: &mut [Column]) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in columns {
        let Some(mut writer) = group.next_column()? else { break };
        let levels = Some(column.levels.as_slice());
        match &column.values {
            Values::Texts(texts) => writer.typed::<ByteArrayType>().write_batch(texts, levels, None)?,
            Values::Ints(ints) => writer.typed::<Int64Type>().write_batch(ints, levels, None)?,
            Values::Floats(floats) => writer.typed::<DoubleType>().write_batch(floats, levels, None)?,
            Values::Bools(bools) => writer.typed::<BoolType>().write_batch(bools, levels, None)?,
        };
        writer.close()?;
        column.levels.clear();
        match &mut column.values {
            Values::Texts(texts) => texts.clear(),
            Values::Ints(ints) => ints.clear(),
            Values::Floats(floats) => floats.clear(),
            Values::Bools(bools) => bools.clear(),
        }
    }
    group.close().map(drop)
}

impl Sink for Parquet<'_> {
    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows >= ROWS { self.group() } else { Ok(()) }
    }
}
