//! The page of an experiment.

use super::{Experiment, Report, Table};

/// The page: where it comes from, what it says at a glance, then its parts.
pub(super) fn page(experiment: &dyn Experiment, report: &Report, head: &[(&str, String)]) -> String {
    let name = experiment.name();
    let mut out = format!("# {name}: {}\n\n{}\n\n", experiment.about(), experiment.introduction());
    let mut origin = Table::new(["", ""]);
    for (what, value) in head {
        origin.row([(*what).into(), value.as_str().into()]);
    }
    out.push_str(&origin.markdown());
    out.push_str("\nWritten by the command above, whose numbers stand in the CSV files beside it. [All experiments](README.md).\n");
    out.push_str("\n## At a glance\n\n");
    let mut verdicts = Table::new(["", "the document", "here", ""]);
    for v in &report.verdicts {
        let stand = format!("**{}**", v.stand.word());
        verdicts.row([v.item.into(), v.document.as_str().into(), v.ours.as_str().into(), stand.into()]);
    }
    out.push_str(&verdicts.markdown());
    if !report.settings.is_empty() {
        out.push_str("\n## What runs, and how it is set\n\n");
        let mut settings = Table::new(["", ""]);
        for (what, value) in &report.settings {
            settings.row([what.as_str().into(), value.as_str().into()]);
        }
        out.push_str(&settings.markdown());
    }
    for section in &report.sections {
        out.push_str(&format!("\n## {}\n", section.heading));
        if !section.text.is_empty() {
            out.push_str(&format!("\n{}\n", section.text.trim_end()));
        }
        if let Some((end, _)) = &section.picture {
            out.push_str(&format!("\n![{}]({name}-{end}.svg)\n\n([PNG]({name}-{end}.png))\n", section.heading));
        }
        if let Some((end, table)) = &section.table {
            out.push_str(&format!("\n{}\n([CSV]({name}-{end}.csv))\n", table.markdown()));
        }
    }
    out
}
