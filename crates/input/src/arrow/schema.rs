//! The columns of a table of Arrow: their names and types, and where in a batch their values are.

use super::flat::{Malformed, Table};

const UNION: &str = "a union";

/// The deepest types that are followed.
const MOST_DEPTH: usize = 64;

/// A column.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: Kind,
    children: Vec<Field>,
    /// Where its values are numbers into a dictionary.
    dictionary: Option<Dictionary>,
}

/// Integers of one width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Integers {
    /// Bytes of one.
    pub(super) width: usize,
    pub(super) signed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Dictionary {
    id: i64,
    numbers: Integers,
}

/// A type, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Integers(Integers),
    /// Strings, with places of 8 bytes if they are large, else of 4.
    Text {
        large: bool,
    },
    TextViews,
    Struct,
    /// Any other, by its name.
    Other(&'static str, Buffers),
}

/// The buffers of a column of its own, without those of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffers {
    /// This many.
    Fixed(usize),
    /// Two, and as many more as the batch says.
    Views,
}

/// How the values of a column that can be read lie in its buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Integers(Integers),
    Text {
        large: bool,
    },
    TextViews,
    /// Numbers into a dictionary of strings or integers.
    Dictionary {
        id: i64,
        numbers: Integers,
    },
}

/// Where a column is in a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Its node, which says how many values it has.
    pub(super) node: usize,
    /// Its first buffer, which says which values are there.
    pub(super) buffer: usize,
    /// The buffers of that kind of the structs that it is in.
    pub(super) parents: Vec<usize>,
    /// How many buffers it has.
    pub(super) buffers: usize,
}

/// The fewest bytes of a field in a flatbuffer: two offsets, beside its name.
const FIELD_BYTES: usize = 8;

/// The columns of a schema.
pub(super) fn fields(schema: Table<'_>) -> Result<Vec<Field>, Malformed> {
    let mut budget = schema.whole_bytes();
    schema
        .tables(1)?
        .map(|field| read(field?, 0, &mut budget))
        .collect()
}

/// Reads a field, whose bytes the budget must hold: a few shared tables can stand for any number of fields.
fn read(table: Table<'_>, depth: usize, budget: &mut usize) -> Result<Field, Malformed> {
    if depth > MOST_DEPTH {
        return Err(Malformed);
    }
    let name = table.string(0)?;
    let bytes = FIELD_BYTES.saturating_add(name.len());
    *budget = budget.checked_sub(bytes).ok_or(Malformed)?;
    let dictionary = match table.table(4)? {
        None => None,
        Some(dictionary) => {
            let numbers = match dictionary.table(1)? {
                Some(numbers) => integers(numbers)?,
                None => Integers {
                    width: 4,
                    signed: true,
                },
            };
            let id = dictionary.i64(0)?;
            Some(Dictionary { id, numbers })
        }
    };
    let children = table.tables(5)?;
    Ok(Field {
        name: name.to_owned(),
        kind: kind(table)?,
        children: children
            .map(|child| read(child?, depth + 1, budget))
            .collect::<Result<_, _>>()?,
        dictionary,
    })
}

fn integers(table: Table<'_>) -> Result<Integers, Malformed> {
    let width = match table.i32(0)? {
        8 => 1,
        16 => 2,
        32 => 4,
        64 => 8,
        _ => return Err(Malformed),
    };
    let signed = table.bool(1)?;
    Ok(Integers { width, signed })
}

fn kind(field: Table<'_>) -> Result<Kind, Malformed> {
    let other = |name, buffers| Ok(Kind::Other(name, Buffers::Fixed(buffers)));
    match field.u8(2)? {
        1 => other("nulls", 0),
        2 => Ok(Kind::Integers(integers(field.table(3)?.ok_or(Malformed)?)?)),
        3 => other("floating point numbers", 2),
        4 | 19 => other("binary data", 3),
        5 => Ok(Kind::Text { large: false }),
        6 => other("booleans", 2),
        7 => other("decimals", 2),
        8 => other("dates", 2),
        9 => other("times", 2),
        10 => other("timestamps", 2),
        11 => other("intervals", 2),
        12 | 21 => other("a list", 2),
        13 => Ok(Kind::Struct),
        // Since version 5, none of its buffers says which values are there.
        14 => {
            let mode = field.table(3)?.map_or(Ok(0), |union| union.i16(0))?;
            other(UNION, if mode == 1 { 2 } else { 1 })
        }
        15 => other("fixed-size binary data", 2),
        16 => other("a fixed-size list", 1),
        17 => other("a map", 2),
        18 => other("durations", 2),
        20 => Ok(Kind::Text { large: true }),
        22 => other("run-end encoded", 0),
        23 => Ok(Kind::Other("binary data", Buffers::Views)),
        24 => Ok(Kind::TextViews),
        25 | 26 => other("a list", 3),
        _ => Err(Malformed),
    }
}

impl Field {
    /// The type in words.
    pub(super) fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Integers(_) => "integers",
            Kind::Text { .. } | Kind::TextViews => "strings",
            Kind::Struct => "a struct",
            Kind::Other(name, _) => name,
        }
    }

    /// Whether its values are strings.
    pub(super) fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text { .. } | Kind::TextViews)
    }

    /// Whether it is a union, or has one in it.
    pub(super) fn has_union(&self) -> bool {
        matches!(self.kind, Kind::Other(UNION, _)) || self.children.iter().any(Self::has_union)
    }

    /// How its values lie in its buffers, if it can be read.
    pub(super) fn layout(&self) -> Option<Layout> {
        if let Some(Dictionary { id, numbers }) = self.dictionary {
            let is_read = matches!(
                self.kind,
                Kind::Integers(_) | Kind::Text { .. } | Kind::TextViews
            );
            return is_read.then_some(Layout::Dictionary { id, numbers });
        }
        match self.kind {
            Kind::Integers(integers) => Some(Layout::Integers(integers)),
            Kind::Text { large } => Some(Layout::Text { large }),
            Kind::TextViews => Some(Layout::TextViews),
            Kind::Struct | Kind::Other(..) => None,
        }
    }

    /// The values of its dictionary, as a column.
    pub(super) fn of_dictionary(&self, id: i64) -> Option<Self> {
        if self
            .dictionary
            .is_some_and(|dictionary| dictionary.id == id)
        {
            return Some(Self {
                dictionary: None,
                ..self.clone()
            });
        }
        self.children
            .iter()
            .find_map(|child| child.of_dictionary(id))
    }
}

/// The columns of this name, or inside structs by their path, such as `meta.url`, each by the numbers of the
/// fields that lead to it.
pub(super) fn find(fields: &[Field], path: &str) -> Vec<Vec<usize>> {
    let mut found: Vec<Vec<usize>> = Vec::new();
    for (number, field) in fields.iter().enumerate() {
        if field.name == path {
            found.push(vec![number]);
        }
    }
    if !found.is_empty() {
        return found;
    }
    for (number, field) in fields.iter().enumerate() {
        let rest = path.strip_prefix(&*field.name);
        let rest = rest.and_then(|rest| rest.strip_prefix('.'));
        if let Some(rest) = rest.filter(|_| field.kind == Kind::Struct) {
            for mut inner in find(&field.children, rest) {
                inner.insert(0, number);
                found.push(inner);
            }
        }
    }
    found
}

/// The field that some numbers lead to.
pub(super) fn at<'a>(fields: &'a [Field], numbers: &[usize]) -> Option<&'a Field> {
    let (first, rest) = numbers.split_first()?;
    let field = fields.get(*first)?;
    if rest.is_empty() {
        return Some(field);
    }
    at(&field.children, rest)
}

/// A walk over the buffers of a batch.
pub(super) struct Walk<'a> {
    /// How many buffers each column of views has beside its two.
    pub(super) views: std::slice::Iter<'a, usize>,
    node: usize,
    buffer: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(views: &'a [usize]) -> Self {
        Self {
            views: views.iter(),
            node: 0,
            buffer: 0,
        }
    }

    /// The place of the column that some numbers lead to. May be asked for one column.
    pub(super) fn place(mut self, fields: &[Field], numbers: &[usize]) -> Result<Place, Malformed> {
        let mut fields = fields;
        let mut parents = Vec::new();
        for (depth, &number) in numbers.iter().enumerate() {
            for field in &fields[..number.min(fields.len())] {
                self.pass(field)?;
            }
            let field = fields.get(number).ok_or(Malformed)?;
            let (node, buffer) = (self.node, self.buffer);
            let buffers = self.own(field)?;
            if depth + 1 == numbers.len() {
                return Ok(Place {
                    node,
                    buffer,
                    parents,
                    buffers,
                });
            }
            parents.push(buffer);
            fields = &field.children;
        }
        Err(Malformed)
    }

    /// Goes over the node and the buffers of a field without its children; how many buffers these are.
    fn own(&mut self, field: &Field) -> Result<usize, Malformed> {
        self.node += 1;
        let buffers = if field.dictionary.is_some() {
            2
        } else {
            match field.kind {
                Kind::Integers(_) => 2,
                Kind::Text { .. } => 3,
                Kind::Struct => 1,
                Kind::Other(_, Buffers::Fixed(buffers)) => buffers,
                Kind::TextViews | Kind::Other(_, Buffers::Views) => {
                    2 + self.views.next().ok_or(Malformed)?
                }
            }
        };
        self.buffer += buffers;
        Ok(buffers)
    }

    fn pass(&mut self, field: &Field) -> Result<(), Malformed> {
        self.own(field)?;
        if field.dictionary.is_none() {
            for child in &field.children {
                self.pass(child)?;
            }
        }
        Ok(())
    }
}
