//! Whose door a proxy stands at: by a project's names, or the only tenant there is.

use tollkeeper_store::{By, Door, DoorFound, NewProject, TenantPatch};

use crate::{Fresh, NOW};

on_both! {
    a_project_is_known_by_every_name_of_it,
    a_name_that_another_tenant_has_too_stays_the_operators,
    a_tenant_needs_no_name_as_long_as_it_is_the_only_one,
}

async fn make(fresh: &Fresh, tenant_id: &str, slug: &str) -> String {
    let by = By { tenant_id, root_key_id: &fresh.root_key_id, now: NOW };
    let new = NewProject {
        name: "Payments".to_owned(),
        slug: Some(slug.to_owned()),
        ..NewProject::default()
    };
    fresh.store.create_project(by, new).await.unwrap().value.id
}

async fn one(fresh: &Fresh, named: &str) -> Door {
    match fresh.store.door_of_project(named).await.unwrap() {
        DoorFound::One(door) => door,
        other => panic!("{named}: {other:?}"),
    }
}

async fn a_project_is_known_by_every_name_of_it(fresh: Fresh) {
    let id = make(&fresh, &fresh.tenant_id, "payments").await;
    for named in [&*id, "payments", "default/payments"] {
        let door = one(&fresh, named).await;
        assert_eq!((&*door.tenant.id, &*door.tenant.slug), (&*fresh.tenant_id, "default"));
        assert_eq!(door.project_id.as_deref(), Some(&*id), "{named}");
    }
    for named in ["", "Payments", "default", "default/", "/payments", "other/payments"] {
        let found = fresh.store.door_of_project(named).await.unwrap();
        assert!(matches!(found, DoorFound::None), "{named}: {found:?}");
    }
    fresh.store.delete_project(fresh.by(), &id).await.unwrap();
    for named in [&*id, "payments", "default/payments"] {
        let found = fresh.store.door_of_project(named).await.unwrap();
        assert!(matches!(found, DoorFound::None), "{named}: {found:?}");
    }
}

async fn a_name_that_another_tenant_has_too_stays_the_operators(fresh: Fresh) {
    let other = fresh.second_tenant().await;
    let ours = make(&fresh, &fresh.tenant_id, "payments").await;
    let theirs = make(&fresh, &other, "payments").await;
    assert_eq!(&*one(&fresh, "payments").await.tenant.id, &*fresh.tenant_id);
    assert_eq!(&*one(&fresh, "default/payments").await.tenant.id, &*fresh.tenant_id);
    assert_eq!(&*one(&fresh, &theirs).await.tenant.id, &*other);
    // Whoever takes another's id for a slug does not take its place.
    make(&fresh, &other, &ours).await;
    assert_eq!(&*one(&fresh, &ours).await.tenant.id, &*fresh.tenant_id);
}

async fn a_tenant_needs_no_name_as_long_as_it_is_the_only_one(fresh: Fresh) {
    let DoorFound::One(door) = fresh.store.only_door().await.unwrap() else { panic!("one") };
    assert_eq!((&*door.tenant.id, door.project_id), (&*fresh.tenant_id, None));
    let other = fresh.second_tenant().await;
    assert!(matches!(fresh.store.only_door().await.unwrap(), DoorFound::Several));
    let off = TenantPatch { enabled: Some(false), ..TenantPatch::default() };
    fresh.store.update_tenant(fresh.by(), &other, off).await.unwrap();
    assert!(matches!(fresh.store.only_door().await.unwrap(), DoorFound::Several));
}
