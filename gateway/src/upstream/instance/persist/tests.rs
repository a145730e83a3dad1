//! What is kept, for whom, and how often; with the clock paused.

use super::*;
use crate::memory::budget::Budget;
use crate::protocol::capabilities::Capabilities;
use crate::protocol::capabilities::Supports;
use crate::protocol::revision::Revision;
use crate::protocol::value::Object;
use crate::runtime::Scratch;
use crate::upstream::config::Cache;
use crate::upstream::declaring::declares_now;
use crate::upstream::instance::inventory::Item;
use crate::upstream::instance::inventory::schedule::ListKinds;
use crate::upstream::owner::Ownership;
use crate::upstream::tests::rig::{Rig, config};
use std::collections::HashSet;
use tokio::sync::watch;

/// A store in a folder that goes when it is dropped.
struct Place(Scratch, Arc<InventoryCache>);

impl Place {
    fn new() -> Self {
        let scratch = Scratch::new();
        let store = InventoryCache::at(&Cache::Folder(scratch.0.clone())).unwrap();
        Self(scratch, store)
    }

    /// What a start would find that declares this.
    fn finds(&self, declared: &Declared) -> Option<String> {
        CachedInventory::new(&self.1, &config(), &Budget::default())
            .load(&config(), (None, declared))
            .map(|inventory| names(&inventory))
    }
}

fn names(inventory: &Inventory) -> String {
    inventory.tools.iter().map(|tool| tool.key.to_string()).collect::<Vec<_>>().join(" ")
}

fn offers(tool: &str) -> Inventory {
    let capabilities = Object::parse(r#"{"tools":{}}"#.into()).unwrap();
    Inventory {
        revision: Revision::V2025_11_25,
        tools: vec![Item::parse(format!("{{\"name\":\"{tool}\"}}").into(), "name").unwrap()].into(),
        resources: Default::default(),
        templates: Default::default(),
        prompts: Default::default(),
        supports: Supports::of(&capabilities, Revision::V2025_11_25),
        capabilities,
        instructions: None,
        fresh: Arc::default(),
        announced: Default::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn an_inventory_that_never_rests_is_kept_now_and_then_and_the_last_of_it_at_the_end() {
    let (place, rig, level) = (Place::new(), Rig::new(config()), Tasks::new());
    let told = declares_now(&rig.instance.owner, &rig.instance.config).unwrap();
    recall(&rig.instance, &place.1);
    level.spawn(keep(rig.instance.clone(), level.clone()));
    let mut kept = HashSet::new();
    for number in 0..600 {
        crate::upstream::instance::inventory::refresh::publish(
            (&rig.instance.offering, &rig.instance.status),
            false,
            offers(&format!("t{number}")),
        );
        sleep(Duration::from_millis(100)).await;
        kept.extend(place.finds(&told));
    }
    assert!((8..=14).contains(&kept.len()), "once in five seconds, in a minute: {kept:?}");
    crate::upstream::instance::inventory::refresh::publish(
        (&rig.instance.offering, &rig.instance.status),
        false,
        offers("last"),
    );
    level.end();
    level.ended().await;
    assert_eq!(place.finds(&told).as_deref(), Some("last"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_could_not_be_read_keeps_what_was_kept() {
    let (place, rig, level) = (Place::new(), Rig::new(config()), Tasks::new());
    let told = declares_now(&rig.instance.owner, &rig.instance.config).unwrap();
    recall(&rig.instance, &place.1);
    level.spawn(keep(rig.instance.clone(), level.clone()));
    for (tool, is_whole) in [("whole", true), ("part", false)] {
        rig.instance.offering.reads.took("tools/list", ListKinds::TOOLS, (!is_whole).then(|| "no".into()));
        crate::upstream::instance::inventory::refresh::publish(
            (&rig.instance.offering, &rig.instance.status),
            false,
            offers(tool),
        );
        sleep(WRITE_EVERY * 2).await;
        assert_eq!(place.finds(&told).as_deref(), Some("whole"));
    }
    level.end();
    level.ended().await;
    assert_eq!(place.finds(&told).as_deref(), Some("whole"));
}

#[tokio::test(start_paused = true)]
async fn what_a_client_says_that_it_can_be_asked_decides_which_inventory_stands() {
    let place = Place::new();
    let sets: [Declared; 2] = [Capabilities::FORM.into(), Capabilities::ROOTS.into()];
    for (declared, tool) in sets.iter().zip(["forms", "roots"]) {
        let stored = CachedInventory::new(&place.1, &config(), &Budget::default());
        stored.save(&offers("nobody's"));
        stored.declares((None, declared));
        stored.save(&offers(tool));
    }
    assert_eq!(sets.each_ref().map(|declared| place.finds(declared)), ["forms", "roots"].map(|tool| Some(tool.into())));
    let files = std::fs::read_dir(place.0.0.join("inventories")).unwrap();
    assert_eq!(files.count(), 2, "nothing is kept before it is known for whom");
    // One client only, which has said nothing yet.
    let said = watch::channel(None).1;
    let rig = Rig::held(config(), Ownership::client(&config(), said));
    recall(&rig.instance, &place.1);
    let stands = || rig.instance.offering.inventory.borrow().as_deref().map(names);
    assert_eq!(stands(), None, "what is kept is for others, maybe");
    for (declared, tool) in sets.iter().zip(["forms", "roots"]) {
        recall_for(&rig.instance, declared).await;
        assert_eq!(stands().as_deref(), Some(tool));
    }
    recall_for(&rig.instance, &Capabilities::URL.into()).await;
    assert_eq!(stands(), None, "nothing is kept for these, and what is kept for others is none of theirs");
    recall_said(&rig.instance, (Era::Modern, &sets[0]));
    assert_eq!(stands(), None, "it was read in another era");
}

#[tokio::test]
async fn what_was_read_before_the_task_first_runs_is_kept_too() {
    let (place, rig, level) = (Place::new(), Rig::new(config()), Tasks::new());
    recall(&rig.instance, &place.1);
    let told = declares_now(&rig.instance.owner, &rig.instance.config).unwrap();
    recall_for(&rig.instance, &told).await;
    let keeping = keep(rig.instance.clone(), level.clone());
    crate::upstream::instance::inventory::refresh::publish(
        (&rig.instance.offering, &rig.instance.status),
        false,
        offers("early"),
    );
    level.end();
    level.spawn(keeping);
    level.ended().await;
    assert_eq!(place.finds(&told).as_deref(), Some("early"));
}
