//! Which infos there are, and their values: the game's variables, and what a lane counts itself.
//!
//! Every key is there in every step, with one type: whole numbers (64 bits) or reals (64 bits).

use super::config::{Config, ConfigError};
use super::lane::Tally;
use crate::emulator::game::Game;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Variable(usize),
    ElapsedSteps,
    EpisodeReturn,
    RawReward,
    PlayerReward(usize),
}

/// Name and column; the last says whether it is there only with `reward_clip`.
const BUILT_IN: [(&str, Column, bool); 3] = [
    ("elapsed_steps", Column::ElapsedSteps, false),
    ("episode_return", Column::EpisodeReturn, false),
    ("raw_reward", Column::RawReward, true),
];

/// Keys of both types, in the order of their values.
#[derive(Debug, Clone, Default)]
pub struct Infos {
    integers: Vec<(String, Column)>,
    reals: Vec<(String, Column)>,
}

impl Infos {
    /// A game's variable hides a signal or a built-in key of the same name.
    pub fn new(game: &Game, config: &Config) -> Result<Self, ConfigError> {
        let mut known: Vec<_> =
            game.names().enumerate().map(|(i, name)| (name.to_owned(), Column::Variable(i))).collect();
        let signals = game.signals.names().enumerate().filter(|(_, name)| !game.names().any(|taken| taken == *name));
        known.extend(signals.map(|(i, name)| (name.to_owned(), Column::Variable(game.width() + i))));
        for (name, column, clipped_only) in BUILT_IN {
            if (config.reward_clip || !clipped_only) && !known.iter().any(|(taken, _)| taken == name) {
                known.push((name.to_owned(), column));
            }
        }
        if config.players > 1 {
            let players = (0..config.players).map(|at| (format!("reward_player_{}", at + 1), Column::PlayerReward(at)));
            known.extend(players.filter(|(name, _)| !game.names().any(|taken| taken == name)));
        }
        if let Some(keys) = &config.info_keys {
            if let Some(missing) = keys.iter().find(|key| !known.iter().any(|(name, _)| name == *key)) {
                let names: Vec<_> = known.iter().map(|(name, _)| name.as_str()).collect();
                return Err(ConfigError::new(
                    "info_keys",
                    format_args!("names of {}", names.join(", ")),
                    format_args!("{missing:?}"),
                ));
            }
            known.retain(|(name, _)| keys.contains(name));
        }
        let (integers, reals) =
            known.into_iter().partition(|(_, column)| matches!(column, Column::Variable(_) | Column::ElapsedSteps));
        Ok(Self { integers, reals })
    }

    pub fn integer_names(&self) -> impl Iterator<Item = &str> {
        self.integers.iter().map(|(name, _)| name.as_str())
    }

    pub fn real_names(&self) -> impl Iterator<Item = &str> {
        self.reals.iter().map(|(name, _)| name.as_str())
    }

    /// The value of whole-number key `key`.
    pub fn integer(&self, key: usize, tally: &Tally) -> i64 {
        match self.integers[key].1 {
            Column::Variable(index) => tally.values[index],
            _ => tally.elapsed as i64,
        }
    }

    /// The value of real key `key`.
    pub fn real(&self, key: usize, tally: &Tally) -> f64 {
        match self.reals[key].1 {
            Column::RawReward => tally.raw_reward,
            Column::PlayerReward(player) => tally.player_rewards[player],
            _ => tally.episode_return,
        }
    }
}
