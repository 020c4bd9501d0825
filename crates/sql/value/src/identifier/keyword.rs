//! PostgreSQL 15's key words (its `kwlist.h`), and what each may name without quotes.
//!
//! This is not what our parser reserves: that is sqlparser's affair. It is what PostgreSQL says of a word, which decides how a name is
//! shown to clients that will give it back to PostgreSQL or to us.

use std::sync::LazyLock;

/// What a key word may name without quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Anything.
    Unreserved,
    /// A column or a table, but no function or type.
    ColumnName,
    /// A function or a type, but no column or table.
    TypeOrFunctionName,
    /// Nothing.
    Reserved,
}

impl Category {
    /// `catcode` of `pg_get_keywords`.
    pub fn code(self) -> &'static str {
        match self {
            Category::Unreserved => "U",
            Category::ColumnName => "C",
            Category::TypeOrFunctionName => "T",
            Category::Reserved => "R",
        }
    }

    /// `catdesc` of `pg_get_keywords`.
    pub fn description(self) -> &'static str {
        match self {
            Category::Unreserved => "unreserved",
            Category::ColumnName => "unreserved (cannot be function or type name)",
            Category::TypeOrFunctionName => "reserved (can be function or type name)",
            Category::Reserved => "reserved",
        }
    }
}

/// A key word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// The word, lower case.
    pub word: &'static str,
    /// What it may name.
    pub category: Category,
    /// Whether it may be a column's label without AS.
    pub bare_label: bool,
}

impl Keyword {
    /// `baredesc` of `pg_get_keywords`.
    pub fn label(&self) -> &'static str {
        if self.bare_label { "can be bare label" } else { "requires AS" }
    }
}

/// All key words, in the order of their letters.
pub static KEYWORDS: LazyLock<Vec<Keyword>> = LazyLock::new(|| {
    let mut all: Vec<Keyword> = WORDS
        .iter()
        .flat_map(|(category, bare_label, words)| {
            let (category, bare_label) = (*category, *bare_label);
            words.split_whitespace().map(move |word| Keyword { word, category, bare_label })
        })
        .collect();
    all.sort_unstable_by_key(|keyword| keyword.word);
    all
});

/// The key word that a name is, in lower case.
pub fn find(name: &str) -> Option<Keyword> {
    KEYWORDS.binary_search_by_key(&name, |keyword| keyword.word).ok().map(|at| KEYWORDS[at])
}

/// Words by category and by whether they may be labels without AS.
const WORDS: &[(Category, bool, &str)] = &[
    (
        Category::Unreserved,
        true,
        "abort absolute access action add admin after aggregate also alter always asensitive assertion assignment at atomic attach \
         attribute backward before begin breadth by cache call called cascade cascaded catalog chain characteristics checkpoint class \
         close cluster columns comment comments commit committed compression configuration conflict connection constraints content \
         continue conversion copy cost csv cube current cursor cycle data database deallocate declare defaults deferred definer delete \
         delimiter delimiters depends depth detach dictionary disable discard document domain double drop each enable encoding \
         encrypted enum escape event exclude excluding exclusive execute explain expression extension external family finalize first \
         following force forward function functions generated global granted groups handler header hold identity if immediate immutable \
         implicit import include including increment index indexes inherit inherits inline input insensitive insert instead invoker \
         isolation key label language large last leakproof level listen load local location lock locked logged mapping match matched \
         materialized maxvalue merge method minvalue mode move name names new next nfc nfd nfkc nfkd no normalized nothing notify \
         nowait nulls object of off oids old operator option options ordinality others overriding owned owner parallel parameter parser \
         partial partition passing password plans policy preceding prepare prepared preserve prior privileges procedural procedure \
         procedures program publication quote range read reassign recheck recursive ref referencing refresh reindex relative release \
         rename repeatable replace replica reset restart restrict return returns revoke role rollback rollup routine routines rows rule \
         savepoint schema schemas scroll search security sequence sequences serializable server session set sets share show simple skip \
         snapshot sql stable standalone start statement statistics stdin stdout storage stored strict strip subscription support sysid \
         system tables tablespace temp template temporary text ties transaction transform trigger truncate trusted type types uescape \
         unbounded uncommitted unencrypted unknown unlisten unlogged until update vacuum valid validate validator value version view \
         views volatile whitespace work wrapper write xml yes zone",
    ),
    (Category::Unreserved, false, "day filter hour minute month over second varying within without year"),
    (
        Category::ColumnName,
        true,
        "between bigint bit boolean coalesce dec decimal exists extract float greatest grouping inout int integer interval least \
         national nchar none normalize nullif numeric out overlay position real row setof smallint substring time timestamp treat trim \
         values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize \
         xmltable",
    ),
    (Category::ColumnName, false, "char character precision"),
    (
        Category::TypeOrFunctionName,
        true,
        "authorization binary collation concurrently cross current_schema freeze full ilike inner is join left like natural outer right \
         similar tablesample verbose",
    ),
    (Category::TypeOrFunctionName, false, "isnull notnull overlaps"),
    (
        Category::Reserved,
        true,
        "all analyse analyze and any asc asymmetric both case cast check collate column constraint current_catalog current_date \
         current_role current_time current_timestamp current_user default deferrable desc distinct do else end false foreign in \
         initially lateral leading localtime localtimestamp not null only or placing primary references select session_user some \
         symmetric table then trailing true unique user using variadic when",
    ),
    (
        Category::Reserved,
        false,
        "array as create except fetch for from grant group having intersect into limit offset on order returning to union where window \
         with",
    ),
];
