//! Test ROMs by other hands, run as `recipes.json` beside them says, with what passes held as a list of names.
//!
//! The ROMs are not in the repository (most state no licence). They are looked for in ROLLCART_TEST_ROMS, else in
//! ../shared/roms beside the repository; without them the test prints how many recipes it skipped, and fails under
//! ROLLCART_REQUIRE_TEST_ROMS=1. After a change that makes more of them pass, record the new list, look at it and commit it:
//!
//! ```text
//! ROLLCART_RECORD=1 cargo test --test conformance
//! ```
//! `make test` runs it twice: translated, and interpreted under ROLLCART_SWITCHED_OFF=jit. The list is the same.

mod accuracycoin;
mod console;
mod nestest;
mod recipes;
mod verdicts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use recipes::Recipe;
use verdicts::Verdict;

/// What passes, one name a line; a ROM's path, or `ROM: test` where one ROM has many.
const PASSING: &str = include_str!("passing.txt");

/// Recipes of mapper 0 that must be on the list, by the beginning of their path, and how many each names.
const REQUIRED: [(&str, usize); 7] = [
    ("nes-test-roms/instr_test-v5/", 16),
    ("nes-test-roms/instr_timing/", 2),
    ("nes-test-roms/cpu_timing_test6/", 1),
    ("nes-test-roms/blargg_ppu_tests_2005.09.15b/", 4),
    ("nes-test-roms/sprite_hit_tests_2005.10.05/", 11),
    ("nes-test-roms/oam_read/", 1),
    ("nes-test-roms/other/nestest.nes", 1),
];

/// Matches one console's power-up palette and no rule.
const NOT_REQUIRED: &str = "power_up_palette";

fn rom_folder() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/roms");
    let folder = std::env::var_os("ROLLCART_TEST_ROMS").map_or_else(beside, PathBuf::from);
    let found = folder.join("recipes.json").is_file();
    if !found {
        println!("skipped all recipes: no recipes.json in {}; set ROLLCART_TEST_ROMS", folder.display());
        let required = std::env::var("ROLLCART_REQUIRE_TEST_ROMS").is_ok_and(|value| value == "1");
        assert!(!required, "ROLLCART_REQUIRE_TEST_ROMS=1 and there are no test ROMs in {}", folder.display());
    }
    found.then_some(folder)
}

/// Every name that was tried, with its verdict.
fn run_all(folder: &Path, recipes: &[Recipe]) -> BTreeMap<String, Verdict> {
    let all = recipes.par_iter().map(|recipe| match recipe.kind.as_str() {
        "accuracycoin" => accuracycoin::run(folder, recipe),
        _ => vec![(recipe.rom.clone(), verdicts::run(folder, recipe))],
    });
    all.flatten().collect()
}

#[test]
fn what_passes_is_what_the_list_says() {
    let Some(folder) = rom_folder() else { return };
    let recipes = recipes::read(&folder);
    let verdicts = run_all(&folder, &recipes);
    let passed: Vec<&str> =
        verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Pass).map(|(name, _)| name.as_str()).collect();
    report(&recipes, &verdicts);
    if std::env::var_os("ROLLCART_RECORD").is_some() {
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/passing.txt");
        std::fs::write(list, passed.join("\n") + "\n").expect("the list can be written");
        return;
    }
    let lost: Vec<String> = (PASSING.lines())
        .filter(|name| !passed.contains(name))
        .map(|name| format!("{name}: {}", verdicts.get(name).map_or("no such recipe".into(), ToString::to_string)))
        .collect();
    let gained: Vec<&str> = passed.into_iter().filter(|name| !PASSING.lines().any(|line| line == *name)).collect();
    assert!(lost.is_empty(), "passed before and do not now:\n{}", lost.join("\n"));
    assert!(gained.is_empty(), "pass now; record them with ROLLCART_RECORD=1:\n{}", gained.join("\n"));
}

#[test]
fn the_list_holds_what_this_project_promises() {
    for (start, count) in REQUIRED {
        let found = PASSING.lines().filter(|line| line.starts_with(start) && !line.contains(NOT_REQUIRED)).count();
        assert_eq!(found, count, "names under {start} in passing.txt");
    }
}

/// Counts by mapper, and what does not pass with its reason.
fn report(recipes: &[Recipe], verdicts: &BTreeMap<String, Verdict>) {
    let mut counts: BTreeMap<u16, (usize, usize)> = BTreeMap::new();
    for recipe in recipes {
        let Some(verdict) = verdicts.get(&recipe.rom) else { continue };
        let row = counts.entry(recipe.mapper).or_default();
        row.0 += usize::from(*verdict == Verdict::Pass);
        row.1 += 1;
        if let Verdict::Fail(reason) = verdict {
            println!("FAIL {}: {reason}", recipe.rom);
        }
    }
    for (mapper, (passed, of)) in counts {
        println!("mapper {mapper}: {passed} of {of} recipes pass");
    }
    let coin: Vec<&Verdict> =
        verdicts.iter().filter(|(name, _)| name.contains(accuracycoin::MARK)).map(|(_, verdict)| verdict).collect();
    let passed = coin.iter().filter(|verdict| ***verdict == Verdict::Pass).count();
    println!("AccuracyCoin: {passed} of {} tests pass", coin.len());
    let unsupported = verdicts.values().filter(|verdict| matches!(verdict, Verdict::Unsupported(_))).count();
    println!("{unsupported} recipes need a board that is not supported yet");
}
