//! The module that Python sees.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::capture::{read, Form};
use crate::engine::{Engine, Gathered, Order, Reading};
use crate::out::Limits;
use crate::tables::Table;
use crate::{opening, out, source, tables};

/// All that one file gave.
struct Analysed {
    form: Form,
    engine: Engine,
    tables: [(&'static str, Table); 9],
}

/// Reads the files, and once more where the first reading tells that another one is right: nearly none is then read twice.
fn analyse_all(files: &[&[u8]], several: bool, limits: &Limits, width: i64, packets: bool) -> Analysed {
    let mut reading = Reading { order: if several { Order::Far } else { Order::Own }, once: false };
    loop {
        let mut engine = Engine::new(limits.clone(), width, packets, reading);
        let mut all = Form::default();
        let mut add = |form: Form| all = Form { bytes: all.bytes + form.bytes, format: all.format.or(form.format), ..form };
        if reading.order != Order::Own {
            let mut gathered = Gathered::new(&mut engine, several);
            files.iter().for_each(|bytes| add(read(bytes, &mut gathered)));
            gathered.tell();
        } else {
            files.iter().for_each(|bytes| add(read(bytes, &mut engine)));
        }
        engine.finish();
        let better = engine.better();
        if better == reading {
            return made(all, engine);
        }
        reading = better;
    }
}

fn made(form: Form, engine: Engine) -> Analysed {
    let verdict = tables::decide(&engine);
    let tables = [
        ("connections", tables::connections(&engine, &verdict)),
        ("subflows", tables::subflows(&engine, &verdict)),
        ("totals", tables::totals(&engine, &verdict)),
        ("bins", tables::bins(&engine, &verdict)),
        ("waits", tables::waits(&engine, &verdict)),
        ("rtts", tables::rtts(&engine, &verdict)),
        ("events", tables::events(&engine, &verdict)),
        ("packets", tables::packets(&engine, &verdict)),
        ("problems", tables::problems(&engine)),
    ];
    Analysed { form, engine, tables }
}

fn checked(bin_ns: i64, limits: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    if bin_ns < 1 {
        return Err(PyValueError::new_err("bin_ns must be at least 1"));
    }
    let mut made = Limits::default();
    for (name, value) in limits.into_iter().flat_map(|limits| limits.iter()) {
        let name: String = name.extract()?;
        if !made.set(&name, value.extract()?) {
            return Err(PyValueError::new_err(format!("there is no limit of the name {name}")));
        }
    }
    Ok(made)
}

fn as_python<'py>(python: Python<'py>, analysed: &Analysed, bin_ns: i64) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(python);
    let engine = &analysed.engine;
    let file = PyDict::new(python);
    file.set_item("format", analysed.form.format)?;
    file.set_item("compression", analysed.form.compression)?;
    file.set_item("bytes", analysed.form.bytes)?;
    file.set_item("packets", engine.out.packet)?;
    file.set_item("tcp_packets", engine.tcp_packets)?;
    file.set_item("other_packets", engine.other_packets)?;
    file.set_item("first_utc_ns", engine.first_time)?;
    file.set_item("last_utc_ns", engine.first_time.map(|_| engine.last))?;
    file.set_item("link_types", PyList::new(python, &engine.link_types)?)?;
    let counts = PyDict::new(python);
    for (name, count) in out::NAMES.iter().zip(engine.out.problems.counts) {
        if count > 0 {
            counts.set_item(*name, count)?;
        }
    }
    file.set_item("problems", counts)?;
    file.set_item("bounded", PyList::new(python, engine.out.bounded.names())?)?;
    file.set_item("bin_ns", bin_ns)?;
    all.set_item("file", file)?;
    for (name, table) in &analysed.tables {
        let columns = PyDict::new(python);
        for column in &table.columns {
            let validity = column.validity.as_ref().map(|bits| PyBytes::new(python, bits));
            columns.set_item(column.name, (column.dtype, PyBytes::new(python, &column.data), validity))?;
        }
        let made = PyDict::new(python);
        made.set_item("rows", table.rows)?;
        made.set_item("columns", columns)?;
        all.set_item(*name, made)?;
    }
    Ok(all)
}

/// Analyses a capture file. OSError: it cannot be opened.
#[pyfunction]
#[pyo3(signature = (path, *, bin_ns = 100_000_000, packets = false, limits = None))]
fn analyse<'py>(
    python: Python<'py>, path: PathBuf, bin_ns: i64, packets: bool, limits: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = checked(bin_ns, limits)?;
    let analysed = python.detach(|| -> std::io::Result<Analysed> {
        let file = source::open(&path)?;
        Ok(analyse_all(&[file.as_deref().unwrap_or_default()], false, &limits, bin_ns, packets))
    })?;
    as_python(python, &analysed, bin_ns)
}

/// Analyses a capture in memory.
#[pyfunction]
#[pyo3(signature = (content, *, bin_ns = 100_000_000, packets = false, limits = None))]
fn analyse_bytes<'py>(
    python: Python<'py>, content: &[u8], bin_ns: i64, packets: bool, limits: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = checked(bin_ns, limits)?;
    let analysed = python.detach(|| analyse_all(&[content], false, &limits, bin_ns, packets));
    as_python(python, &analysed, bin_ns)
}

/// Analyses several captures of one machine as one, in the order of time. OSError: one cannot be opened.
#[pyfunction]
#[pyo3(signature = (paths, *, bin_ns = 100_000_000, packets = false, limits = None))]
fn analyse_together<'py>(
    python: Python<'py>, paths: Vec<PathBuf>, bin_ns: i64, packets: bool, limits: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = checked(bin_ns, limits)?;
    let analysed = python.detach(|| -> std::io::Result<Analysed> {
        let files = paths.iter().map(|path| source::open(path)).collect::<std::io::Result<Vec<_>>>()?;
        let files: Vec<&[u8]> = files.iter().map(|file| file.as_deref().unwrap_or_default()).collect();
        Ok(analyse_all(&files, true, &limits, bin_ns, packets))
    })?;
    as_python(python, &analysed, bin_ns)
}

#[pymodule]
fn tandem_trace_core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let python = module.py();
    module.add_function(wrap_pyfunction!(analyse, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(analyse_together, module)?)?;
    module.add("DIRECTIONS", PyTuple::new(python, ["from_opener", "to_opener"])?)?;
    module.add("JOINED_BY", PyTuple::new(python, ["first", "token", "likeness", "none"])?)?;
    module.add("RTT_METHODS", PyTuple::new(python, ["ack", "timestamp"])?)?;
    module.add("VANTAGES", PyTuple::new(python, ["unknown", "opener", "responder"])?)?;
    module.add("CLOSED_BY", PyTuple::new(python, ["open", "data_fin", "fastclose", "fin", "rst"])?)?;
    module.add("EVENT_KINDS", PyTuple::new(python, opening::NAMES)?)?;
    module.add("PROBLEM_KINDS", PyTuple::new(python, out::NAMES)?)?;
    Ok(())
}
