//! Whole configurations, from text to values and faults.

mod dialects;
mod example;
mod faults;
mod files;
mod imports;
mod layers;
mod leaks;
mod listeners;
mod loading;
mod places;
mod reference;
mod schema;
mod shown;
mod torn;
