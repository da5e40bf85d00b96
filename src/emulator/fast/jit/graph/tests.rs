use proptest::prelude::*;

use super::{Edge, Graph, MOST_CYCLES, Poll, poll, targets};
use crate::emulator::fast::jit::decode::Flow;
use crate::emulator::fast::jit::{Image, Passes, REACHED, WANTED};

const ALL: Passes = Passes {
    idle_skip: true,
    poll_skip: true,
    links: true,
    dead_flags: true,
    polls: true,
    registers: true,
    returns: true,
    layout_seed: 0,
};

/// The graph of a program at $8000 of which every byte below `end` that begins an instruction was reached.
fn graph(program: &[u8], starts: &[u16]) -> Graph {
    graph_with(program, starts, ALL)
}

fn graph_with(program: &[u8], starts: &[u16], passes: Passes) -> Graph {
    let mut prg = program.to_vec();
    prg.resize(0x8000, 0xEA);
    let mut reached = vec![0; 0x8000];
    for &at in starts {
        reached[usize::from(at - 0x8000)] = REACHED;
    }
    Graph::new(&Image::of(&prg), &reached, passes)
}

fn starts(graph: &Graph) -> Vec<(u16, bool)> {
    graph.blocks.iter().map(|block| (block.start, block.entry)).collect()
}

#[test]
fn blocks_begin_where_the_program_may_come_from_elsewhere() {
    // 8000 LDX #5, 8002 DEX, 8003 BNE 8002, 8005 JSR 8010, 8008 RTS; 8010 RTS.
    let program = [0xA2, 5, 0xCA, 0xD0, 0xFD, 0x20, 0x10, 0x80, 0x60, 0, 0, 0, 0, 0, 0, 0, 0x60];
    let graph = graph(&program, &[0x8000, 0x8002, 0x8003, 0x8005, 0x8008, 0x8010]);
    // A loop's head and a call's return are entries; what only code before or a forward jump leads to is none.
    assert_eq!(starts(&graph), [(0x8000, false), (0x8002, true), (0x8005, false), (0x8008, true), (0x8010, false)]);
    let back = &graph.blocks[1];
    assert_eq!(graph.edge(back, 0x8002), Edge::Checked(1));
    assert_eq!(graph.edge(back, 0x8005), Edge::Free(2));
    assert_eq!(graph.edge(back, 0x9000), Edge::Leave);
    assert_eq!(graph.edge(back, 0x0200), Edge::Leave);
}

#[test]
fn waiting_loops_and_what_changes_the_mask_are_left_to_the_interpreter() {
    // 8000 SEI, 8001 LDA $10, 8003 BEQ 8001, 8005 INX, 8006 JMP 8006.
    let program = [0x78, 0xA5, 0x10, 0xF0, 0xFC, 0xE8, 0x4C, 0x06, 0x80];
    let reached = [0x8000, 0x8001, 0x8003, 0x8005, 0x8006];
    // The jump to itself passes over its own turns.
    assert_eq!(starts(&graph(&program, &reached)), [(0x8005, true), (0x8006, true)]);
    let without = graph_with(&program, &reached, Passes { returns: false, ..ALL });
    assert_eq!(starts(&without), [(0x8005, true)]);
}

#[test]
fn a_return_is_foretold_to_go_behind_the_calls_that_lead_to_it() {
    // 8000 JSR 8010, 8003 JSR 8012, 8006 JMP 8006; 8010 INX, 8011 NOP, 8012 JSR 8020, 8015 JMP 8018; 8018 RTS; 8020 RTS.
    let mut program = [0x20, 0x10, 0x80, 0x20, 0x12, 0x80, 0x4C, 0x06, 0x80].to_vec();
    program.resize(0x10, 0);
    program.extend([0xE8, 0xEA, 0x20, 0x20, 0x80, 0x4C, 0x18, 0x80, 0x60]);
    program.resize(0x20, 0);
    program.push(0x60);
    let reached = [0x8000, 0x8003, 0x8006, 0x8010, 0x8011, 0x8012, 0x8015, 0x8018, 0x8020];
    let places = |passes| {
        let graph = graph_with(&program, &reached, passes);
        let behind = |at| {
            let block = graph.blocks.iter().find(|block| block.last().at == at).expect("the RTS ends a block");
            graph.returns(block).into_iter().map(|(to, _)| to).collect::<Vec<_>>()
        };
        (behind(0x8018), behind(0x8020))
    };
    assert_eq!(places(ALL), (vec![0x8003, 0x8006], vec![0x8015]));
    assert_eq!(places(Passes { returns: false, ..ALL }), (vec![], vec![]));
}

#[test]
fn a_polling_loop_is_translated_where_the_time_of_its_read_says_enough() {
    // 8000 BIT $2002, 8003 BVC 8000, 8005 RTS.
    let certain: &[u8] = &[0x2C, 0x02, 0x20, 0x50, 0xFB, 0x60];
    let starts_of = |passes| {
        let mut reached = vec![0; 0x8000];
        for at in [0, 3, 5] {
            reached[at] = REACHED;
        }
        Graph::new(&Image::of(certain), &reached, passes).blocks.iter().map(|block| block.start).collect::<Vec<_>>()
    };
    assert_eq!(starts_of(ALL), [0x8000, 0x8003, 0x8005]);
    assert_eq!(starts_of(Passes { polls: false, ..ALL }), [0x8005]);
    let turn =
        |program: &[u8], end| poll(|at| program.get(usize::from(at - 0x8000)).copied().unwrap_or(0), 0x8000, end);
    assert_eq!(turn(certain, 0x8005), Some(Poll { cycles: 7, since_read: 4 }));
    // LDA $10, BIT $2002, BVC: what was loaded may be old.
    assert_eq!(turn(&[0xA5, 0x10, 0x2C, 0x02, 0x20, 0x50, 0xF9], 0x8007), None);
    // LDA $2002, LDX $10, LDY $11, BPL: a handler's RTI fits in.
    assert_eq!(turn(&[0xAD, 0x02, 0x20, 0xA6, 0x10, 0xA4, 0x11, 0x10, 0xF7], 0x8009), None);
}

#[test]
fn a_register_ends_a_block_and_its_edge_is_checked() {
    // 8000 LDA #1, 8002 STA $2000, 8005 INX, 8006 RTS.
    let program = [0xA9, 1, 0x8D, 0x00, 0x20, 0xE8, 0x60];
    let graph = graph(&program, &[0x8000, 0x8002, 0x8005, 0x8006]);
    assert_eq!(starts(&graph), [(0x8000, false), (0x8005, true)]);
    assert_eq!(graph.edge(&graph.blocks[0], 0x8005), Edge::Checked(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_way_between_two_looks_at_the_deadline_is_long(
        bytes in prop::collection::vec(any::<u8>(), 0x8000),
        reached in prop::collection::vec(prop_oneof![Just(0), Just(REACHED), Just(REACHED | WANTED)], 0x8000),
        links: bool,
        dead_flags: bool,
    ) {
        let passes = Passes { links, dead_flags, ..ALL };
        let graph = Graph::new(&Image::of(&bytes), &reached, passes);
        for block in &graph.blocks {
            prop_assert!(block.bound <= MOST_CYCLES, "{:04X}: {}", block.start, block.bound);
            let last = block.instructions.len() - 1;
            for (at, instruction) in block.instructions.iter().enumerate() {
                prop_assert!(instruction.flow == Flow::Next || at == last && instruction.flow != Flow::Left);
            }
            for to in targets(block).into_iter().flatten() {
                if let Edge::Free(next) = graph.edge(block, to) {
                    let next = &graph.blocks[next];
                    prop_assert!(next.start > block.start && links && dead_flags);
                    prop_assert!(block.cycles + next.bound <= block.bound);
                }
            }
        }
    }
}
