//! The main conversation of a transcript: which records it is made of, in order.

use std::collections::{HashMap, HashSet};

use super::index::{Id, Index, KeptByCompaction, Node, RecordRole};

/// The main conversation, as places in the index, in order. `timestamp` reads when a record was written.
///
/// It ends at the last record of the file that has no successor in the main conversation, and follows the parents from
/// there. Messages that a compaction kept are inserted first, and calls and results of parallel tools are
/// inserted afterwards.
pub(super) fn main(index: &mut Index, timestamp: &mut dyn FnMut(&Node) -> String) -> Vec<u32> {
    relink(index);
    let Some((leaf, behind)) = leaf(index) else {
        return Vec::new();
    };
    let chain = walk(index, leaf);
    // Records that lead back to an earlier part of the conversation form a circle, so they are not after it.
    let returning: HashSet<u32> = behind.iter().copied().collect();
    let is_behind = !chain.iter().any(|at| returning.contains(at));
    let mut whole = put_back(index, chain, timestamp);
    let queued = behind
        .into_iter()
        .filter(|at| index.node(*at).kind == RecordRole::Queued);
    whole.extend(queued.filter(|_| is_behind));
    whole
}

/// The conversation of a subagent: the parents from the last prompt or answer of its file.
pub(super) fn subagent(index: &Index) -> Vec<u32> {
    let messages = (0..index.nodes.len() as u32)
        .filter(|at| matches!(index.node(*at).kind, RecordRole::User | RecordRole::Assistant));
    let leaf = messages.max_by_key(|at| index.node(*at).offset);
    leaf.map_or_else(Vec::new, |leaf| walk(index, leaf))
}

/// Inserts the records that compactions kept behind their anchors: the first one follows the anchor, and the anchor's former
/// successor follows the last one.
fn relink(index: &mut Index) {
    if index.kept.is_empty() {
        return;
    }
    let mut children: HashMap<Id, Vec<u32>> = HashMap::new();
    for (at, node) in (0..).zip(&index.nodes) {
        if let Some(parent) = node.parent {
            children.entry(parent).or_default().push(at);
        }
    }
    let kept = std::mem::take(&mut index.kept);
    let link = |index: &mut Index, child: u32, parent: Id, children: &mut HashMap<Id, Vec<u32>>| {
        index.nodes[child as usize].parent = Some(parent);
        children.entry(parent).or_default().push(child);
    };
    for kept in kept.values() {
        let (first, anchor, last) = match kept {
            KeptByCompaction::Segment { head, anchor, tail } => {
                if let Some(head) = index.get(*head) {
                    link(index, head, *anchor, &mut children);
                }
                (*head, *anchor, *tail)
            }
            KeptByCompaction::Messages { anchor, ids } => {
                let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
                    continue;
                };
                let Some(nodes) = ids.iter().map(|id| index.get(*id)).collect::<Option<Vec<u32>>>() else {
                    continue;
                };
                let mut parent = *anchor;
                for (node, id) in nodes.into_iter().zip(ids) {
                    link(index, node, parent, &mut children);
                    parent = *id;
                }
                (*first, *anchor, *last)
            }
        };
        for child in children.remove(&anchor).unwrap_or_default() {
            let node = index.node(child);
            if node.parent != Some(anchor) {
                continue;
            }
            if node.id == first {
                children.entry(anchor).or_default().push(child);
            } else {
                link(index, child, last, &mut children);
            }
        }
    }
}

/// Whether a record belongs to the main conversation.
fn is_main(node: &Node) -> bool {
    !node.is_sidechain && !node.is_of_team && node.kind != RecordRole::Progress
}

/// Whether a record is a message of the conversation.
fn is_message(node: &Node) -> bool {
    matches!(node.kind, RecordRole::User | RecordRole::Assistant)
}

/// Where the conversation stands, and what follows that, in order: notes, and prompts that have queued up.
fn leaf(index: &Index) -> Option<(u32, Vec<u32>)> {
    let mains = index.nodes.iter().filter(|node| is_main(node));
    let parents: HashSet<Id> = mains.filter_map(|node| node.parent).collect();
    let mut ends: Vec<u32> = (0..)
        .zip(&index.nodes)
        .filter(|(_, node)| is_main(node) && !parents.contains(&node.id))
        .map(|(at, _)| at)
        .collect();
    ends.sort_unstable_by_key(|at| std::cmp::Reverse(index.node(*at).offset));
    // Records that lead to no message need not be visited again.
    let mut in_vain = vec![false; index.nodes.len()];
    for end in ends {
        let mut behind = Vec::new();
        let mut next = Some(end);
        while let Some(at) = next {
            let node = index.node(at);
            if is_message(node) {
                behind.reverse();
                return Some((at, behind));
            }
            if std::mem::replace(&mut in_vain[at as usize], true) {
                break;
            }
            behind.push(at);
            next = node.parent.and_then(|parent| index.get(parent));
        }
    }
    None
}

/// The parents, from the first one to `leaf`. A circle is followed once.
fn walk(index: &Index, leaf: u32) -> Vec<u32> {
    let mut seen = vec![false; index.nodes.len()];
    let mut chain = Vec::new();
    let mut next = Some(leaf);
    while let Some(at) = next {
        if std::mem::replace(&mut seen[at as usize], true) {
            break;
        }
        chain.push(at);
        next = index.node(at).parent.and_then(|parent| index.get(parent));
    }
    chain.reverse();
    chain
}

/// The answer with a call; `None` if it is unknown.
type Maker = Option<u32>;

/// Inserts the calls and results that the parents skip.
///
/// The CLI records an answer block by block, each following the last, and each result as the successor of its call. So after
/// parallel tools the parents skip all results but one, and all calls behind the one with that result. The skipped ones belong behind the last
/// block of their answer in the chain.
fn put_back(index: &Index, chain: Vec<u32>, timestamp: &mut dyn FnMut(&Node) -> String) -> Vec<u32> {
    let mut in_chain = vec![false; index.nodes.len()];
    let mut last_of: HashMap<Id, u32> = HashMap::new();
    let mut answers = Vec::new();
    for at in &chain {
        in_chain[*at as usize] = true;
        if let Some(message) = index.node(*at).message
            && last_of.insert(message, *at).is_none()
        {
            answers.push(message);
        }
    }
    if answers.is_empty() {
        return chain;
    }
    let (blocks, makers) = blocks_and_makers(index, &last_of);
    let results = results(index, &makers);

    let calls = |at: u32| index.calls.get(&at).map_or(&[][..], |calls| calls);
    let is_result = |at: u32| index.node(at).kind == RecordRole::User;
    let mut answered: Option<HashSet<Id>> = None;
    let mut behind: HashMap<u32, Vec<u32>> = HashMap::new();
    for message in answers {
        let blocks = &blocks[&message];
        let lost_blocks = blocks.iter().copied().filter(|at| !in_chain[*at as usize]);
        let mut lost_blocks: Vec<u32> = lost_blocks.collect();
        let is_of_answer = |at: u32| index.node(at).message == Some(message);
        let (mut lost, mut strays, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for block in blocks {
            for result in results.get(block).into_iter().flatten() {
                if in_chain[*result as usize] || !seen.insert(*result) {
                    continue;
                }
                let parent = index.node(*result).parent.and_then(|parent| index.get(parent));
                if parent.is_some_and(is_of_answer) {
                    lost.push(*result);
                } else {
                    strays.push(*result);
                }
            }
        }
        if !strays.is_empty() {
            let all = chain
                .iter()
                .filter(|at| is_result(**at))
                .flat_map(|at| calls(*at));
            let mut answered = answered.get_or_insert_with(|| all.copied().collect()).clone();
            answered.extend(lost.iter().flat_map(|at| calls(*at)));
            strays.sort_unstable();
            for stray in strays {
                let is_open = |call: &Id| {
                    let maker = makers.get(call).copied().flatten();
                    !answered.contains(call) && maker.is_some_and(is_of_answer)
                };
                if calls(stray).iter().any(is_open) {
                    answered.extend(calls(stray));
                    lost.push(stray);
                }
            }
        }
        if lost.is_empty() && lost_blocks.is_empty() {
            continue;
        }
        lost_blocks.sort_by_cached_key(|at| timestamp(index.node(*at)));
        lost.sort_by_cached_key(|at| timestamp(index.node(*at)));
        lost_blocks.append(&mut lost);
        for at in &lost_blocks {
            in_chain[*at as usize] = true;
        }
        behind.insert(last_of[&message], lost_blocks);
    }
    if behind.is_empty() {
        return chain;
    }
    let with_lost = |at: u32| std::iter::once(at).chain(behind.get(&at).into_iter().flatten().copied());
    chain.into_iter().flat_map(with_lost).collect()
}

/// The blocks of each answer that is in the chain, and who made each call of any answer.
fn blocks_and_makers(
    index: &Index,
    wanted: &HashMap<Id, u32>,
) -> (HashMap<Id, Vec<u32>>, HashMap<Id, Maker>) {
    let mut blocks: HashMap<Id, Vec<u32>> = HashMap::new();
    let mut makers: HashMap<Id, Maker> = HashMap::new();
    for (at, node) in (0..).zip(&index.nodes) {
        let Some(message) = node.message else {
            continue;
        };
        if wanted.contains_key(&message) {
            blocks.entry(message).or_default().push(at);
        }
        for call in index.calls.get(&at).into_iter().flatten() {
            let maker = makers.entry(*call).or_insert(Some(at));
            // A call that is in two answers can't be attributed to either.
            let is_same = maker.is_some_and(|maker| index.node(maker).message == Some(message));
            *maker = is_same.then_some(at);
        }
    }
    (blocks, makers)
}

/// The results that may belong to each block: they follow it, name it, or are of a call in it.
fn results(index: &Index, makers: &HashMap<Id, Maker>) -> HashMap<u32, Vec<u32>> {
    let mut results: HashMap<u32, Vec<u32>> = HashMap::new();
    let writer = |node: &Node| (node.is_sidechain, node.agent);
    for (at, node) in (0..).zip(&index.nodes) {
        let (RecordRole::User, Some(calls), Some(parent)) = (node.kind, index.calls.get(&at), node.parent)
        else {
            continue;
        };
        let mut belongs = |block: u32| results.entry(block).or_default().push(at);
        if let Some(parent) = index.get(parent) {
            belongs(parent);
        }
        let source = index.sources.get(&at).and_then(|source| index.get(*source));
        let of_calls = calls
            .iter()
            .filter_map(|call| makers.get(call).copied().flatten());
        for block in source.into_iter().chain(of_calls) {
            if writer(index.node(block)) == writer(node) {
                belongs(block);
            }
        }
    }
    results
}
