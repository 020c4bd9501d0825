//! Matches beside what PostgreSQL says are in `tests/golden/functions.txt`; here is what bounds the work.

use super::*;

fn first(pattern: &str, text: &str) -> Result<Option<Spans>, SqlError> {
    let mut found = None;
    Regex::cached(pattern, Flags::NONE)?.each(text, 0, true, &mut || Ok(()), |spans| {
        found = Some(spans.clone());
        Ok(false)
    })?;
    Ok(found)
}

/// How often a search asks whether to go on: its work in units.
fn looks(pattern: &str, text: &str) -> usize {
    let mut looks = 0;
    let mut look = || {
        looks += 1;
        Ok(())
    };
    let regex = Regex::cached(pattern, Flags::NONE).expect("a pattern");
    let done = regex.each(text, 0, true, &mut look, |_| Ok(false));
    done.expect("no error");
    looks
}

#[test]
fn patterns_that_explode_elsewhere_do_not() {
    let text = "a".repeat(20_000);
    for pattern in
        ["(a*)*b", "(a|aa)+$", "(a|a)*b", "(?=(a*)*b)a", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)(.*)(.*)(.*)(.*)x?"]
    {
        let work = looks(pattern, &text);
        assert!(work <= 40, "{pattern}: {work}");
    }
}

#[test]
fn back_references_end_in_an_error_rather_than_never() {
    let text: String = (0..200).map(|n| n.to_string()).collect();
    let error = first(r"^(.+)(.+)(.+)\3\2\1$", &text).expect_err("too many ways");
    assert_eq!(error.state, SqlState::TOO_COMPLEX);
    assert_eq!(first(r"(.+)\1", "xyabab").expect("found").expect("a match")[0], Some((2, 6)));
}

#[test]
fn a_search_can_be_cancelled() {
    let cancelled = || Err(SqlError::new(SqlState::QUERY_CANCELED, "cancelled"));
    let text = "a".repeat(1_000_000);
    let regex = Regex::cached(r"\y(a*)x\y", Flags::NONE).expect("a pattern");
    let error = regex.is_match(&text, &mut || cancelled()).expect_err("cancelled");
    assert_eq!(error.state, SqlState::QUERY_CANCELED);
}

#[test]
fn reading_to_the_end_for_each_match_is_work() {
    let text = format!("{}{}", "xb".repeat(64), "c".repeat(1 << 20));
    let looks = crate::work::looks();
    let mut times = 0;
    let regex = Regex::cached("x[^y]*y|b", Flags::NONE).expect("a pattern");
    let each = |_: &Spans| {
        times += 1;
        Ok(true)
    };
    regex.each(&text, 0, false, &mut || Ok(()), each).expect("matched");
    assert_eq!(times, 64);
    assert!(crate::work::looks() - looks > 8, "64 times a megabyte was read");
}

#[test]
fn large_and_deep_patterns_are_refused() {
    let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    // Statements have that much of stack: so has what is tested here.
    sql_value::stack::roomy(|| {
        for pattern in ["(((a{255}){255}){255})", &"(".repeat(100_000), &nested(1_000)] {
            assert_eq!(first(pattern, "a").expect_err("refused").state, SqlState(*b"2201B"));
        }
        assert!(first(&nested(999), "a").expect("matched").is_some());
    });
}

#[test]
fn any_pattern_is_read_or_refused() {
    let alphabet: Vec<char> = r"ab(){}[]*+?|\^$.1,-:=<!>#dDwmMyAZ xé".chars().collect();
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut pattern = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            pattern.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
        }
        if let Ok(regex) = Regex::cached(&pattern, Flags::NONE) {
            let _ = regex.each("aab é1-a(b)", 0, true, &mut || Ok(()), |spans| Ok(spans[0].is_some()));
        }
    }
}
