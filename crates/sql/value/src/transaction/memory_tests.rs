use super::*;

fn begin(kv: &MemoryKv, isolation: Isolation) -> Box<dyn Transaction> {
    kv.begin(&BeginOptions { isolation, ..BeginOptions::default() }).expect("begin")
}

fn put(kv: &MemoryKv, key: &'static str, value: &'static str) {
    let mut txn = begin(kv, Isolation::Serializable);
    txn.put(key.into(), value.into()).expect("put");
    txn.commit().expect("commit");
}

fn span(start: &'static str, end: &'static str) -> Span {
    Bytes::from(start)..Bytes::from(end)
}

#[test]
fn a_snapshot_does_not_move_and_own_writes_show() {
    let kv = MemoryKv::new();
    put(&kv, "a", "1");
    let mut txn = begin(&kv, Isolation::RepeatableRead);
    put(&kv, "a", "2");
    assert_eq!(txn.get(b"a").expect("get"), Some("1".into()));
    txn.put("b".into(), "own".into()).expect("put");
    let chunk = txn.scan(&ScanRequest { span: span("a", "z"), reverse: true, limit: 1 }).expect("scan");
    assert_eq!(chunk.rows, vec![("b".into(), "own".into())]);
    let rest = chunk.rest.expect("more");
    let chunk = txn.scan(&ScanRequest { span: rest, reverse: true, limit: 10 }).expect("scan");
    assert_eq!(chunk.rows, vec![("a".into(), "1".into())]);
}

#[test]
fn write_skew_is_refused_only_when_serializable() {
    for (isolation, refused) in [(Isolation::Serializable, true), (Isolation::RepeatableRead, false)] {
        let kv = MemoryKv::new();
        put(&kv, "a", "1");
        put(&kv, "b", "1");
        let (mut one, mut two) = (begin(&kv, isolation), begin(&kv, isolation));
        one.get(b"a").expect("get");
        two.get(b"b").expect("get");
        one.put("b".into(), "0".into()).expect("put");
        two.put("a".into(), "0".into()).expect("put");
        one.commit().expect("first commits");
        assert_eq!(two.commit().is_err(), refused, "{isolation:?}");
    }
}

#[test]
fn a_lock_moves_the_snapshot_unless_something_read_has_changed() {
    let kv = MemoryKv::new();
    put(&kv, "a", "1");
    let mut txn = begin(&kv, Isolation::Serializable);
    put(&kv, "a", "2");
    assert!(txn.lock(b"a", LockWait::Wait).expect("lock"));
    assert_eq!(txn.get(b"a").expect("get"), Some("2".into()));
    put(&kv, "a", "3");
    put(&kv, "b", "1");
    assert!(matches!(txn.lock(b"b", LockWait::Wait), Err(KvError::Restart { .. })));
}

#[test]
fn locks_are_skipped_refused_and_found_dead() {
    let kv = MemoryKv::new();
    let (mut one, mut two) = (begin(&kv, Isolation::Serializable), begin(&kv, Isolation::Serializable));
    assert!(one.lock(b"a", LockWait::Wait).expect("lock"));
    assert!(!two.lock(b"a", LockWait::Skip).expect("skip"));
    assert!(matches!(two.lock(b"a", LockWait::NoWait), Err(KvError::LockNotAvailable { waited: false, .. })));
    one.rollback();
    assert!(two.lock(b"a", LockWait::NoWait).expect("lock"));
}

#[test]
fn savepoints_undo_writes() {
    let kv = MemoryKv::new();
    let mut txn = begin(&kv, Isolation::Serializable);
    txn.put("a".into(), "1".into()).expect("put");
    let mark = txn.savepoint();
    txn.put("a".into(), "2".into()).expect("put");
    txn.delete("b".into()).expect("delete");
    txn.rollback_to(mark);
    assert_eq!(txn.get(b"a").expect("get"), Some("1".into()));
    txn.put("a".into(), "3".into()).expect("put");
    txn.rollback_to(mark);
    txn.commit().expect("commit");
    assert_eq!(begin(&kv, Isolation::Serializable).get(b"a").expect("get"), Some("1".into()));
}

#[test]
fn the_past_can_be_read_and_not_written() {
    let kv = MemoryKv::new();
    put(&kv, "a", "1");
    let then = begin(&kv, Isolation::Serializable).snapshot();
    put(&kv, "a", "2");
    let mut txn = kv.begin(&BeginOptions { as_of: Some(then), ..BeginOptions::default() }).expect("begin");
    assert_eq!(txn.get(b"a").expect("get"), Some("1".into()));
    assert_eq!(txn.put("a".into(), "3".into()), Err(KvError::ReadOnly));
}
