//! Where backups are: segments by their names, and the manifests.
//!
//! ```text
//! backups/20261201T140533.482Z-qmxa.json
//! segments/3f/3f0c…9a.zst
//! ```

use std::collections::HashSet;
use std::fs;
use std::path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use serde::Deserialize;

use crate::error::BackupError;
use crate::manifest::{FORMAT, Manifest};
use crate::segment::{Contents, SegmentHash, opened};
use crate::threads::on_a_thread;

const BACKUPS: &str = "backups";
const MANIFEST: &str = ".json";
const SEGMENTS: &str = "segments";
const SEGMENT: &str = ".zst";

/// A place with backups.
#[derive(Clone, Debug)]
pub struct Repository {
    store: Arc<dyn ObjectStore>,
    place: String,
}

/// The part of a manifest that each version has.
#[derive(Deserialize)]
struct Format {
    format: u64,
}

impl Repository {
    /// The backups in a folder, or below a URL such as `s3://bucket/simshard`. A folder that is absent is made.
    ///
    /// # Errors
    /// If the place is none that this program knows, or the folder cannot be made.
    pub fn create(place: &str) -> Result<Self, BackupError> {
        if !place.contains("://") {
            fs::create_dir_all(place).map_err(|error| unusable(place, &error))?;
        }
        Self::open(place)
    }

    /// The backups in a folder that is there, or below a URL.
    ///
    /// # Errors
    /// If the place is none that this program knows, or the folder is absent.
    pub fn open(place: &str) -> Result<Self, BackupError> {
        let store = match place.split_once("://") {
            None => folder(place)?,
            Some(("s3", rest)) => bucket(place, rest)?,
            Some((scheme, _)) => {
                let problem =
                    format!("{scheme}:// is not known: give a folder, or s3://BUCKET/PREFIX");
                return Err(unusable(place, &problem));
            }
        };
        Ok(Self {
            store,
            place: place.to_owned(),
        })
    }

    /// The segments that are there.
    pub(crate) async fn segments(&self) -> Result<HashSet<SegmentHash>, BackupError> {
        let objects = self.store.list(Some(&Path::from(SEGMENTS)));
        let names = objects.try_filter_map(async |object| Ok(segment_of(&object.location)));
        names
            .try_collect()
            .await
            .map_err(self.failed("list segments"))
    }

    /// Stores a segment.
    pub(crate) async fn put_segment(
        &self,
        name: SegmentHash,
        stored: Vec<u8>,
    ) -> Result<(), BackupError> {
        let put = self.store.put(&object_of(name), stored.into()).await;
        put.map_err(self.failed("write a segment"))?;
        Ok(())
    }

    /// The documents of a segment.
    pub(crate) async fn segment(&self, name: SegmentHash) -> Result<Contents, BackupError> {
        let stored = self.bytes(&object_of(name), "read a segment").await?;
        let contents = on_a_thread(move || opened(&stored, name)).await;
        contents.map_err(|fault| BackupError::Segment {
            name,
            place: self.place.clone(),
            object: object_of(name).to_string(),
            source: fault.into(),
        })
    }

    /// The backups, the oldest first. One that is damaged, or of another version, hides no others.
    ///
    /// # Errors
    /// If the place cannot be read.
    pub async fn manifests(&self) -> Result<Vec<Result<Manifest, BackupError>>, BackupError> {
        let mut manifests = Vec::new();
        for id in self.ids().await? {
            manifests.push(self.manifest(&id).await);
        }
        Ok(manifests)
    }

    /// A backup by its name, or the newest one.
    ///
    /// # Errors
    /// If there is none, it cannot be read, or it is damaged.
    pub async fn find(&self, id: Option<&str>) -> Result<Manifest, BackupError> {
        let ids = self.ids().await?;
        match id {
            Some(id) if ids.iter().any(|other| other == id) => self.manifest(id).await,
            Some(id) => Err(BackupError::NoBackup {
                id: id.to_owned(),
                place: self.place.clone(),
            }),
            None => match ids.last() {
                Some(newest) => self.manifest(newest).await,
                None => Err(BackupError::NoBackups(self.place.clone())),
            },
        }
    }

    /// Adds a backup. All of its segments are stored.
    pub(crate) async fn put_manifest(&self, manifest: &Manifest) -> Result<(), BackupError> {
        let damaged = |source| BackupError::Manifest {
            id: manifest.id.clone(),
            place: self.place.clone(),
            source,
        };
        let bytes = serde_json::to_vec_pretty(manifest).map_err(damaged)?;
        let options = PutOptions::from(PutMode::Create);
        let object = manifest_of(&manifest.id);
        let put = self.store.put_opts(&object, bytes.into(), options);
        put.await.map_err(self.failed("write a manifest"))?;
        Ok(())
    }

    /// The names of the backups, the oldest first.
    async fn ids(&self) -> Result<Vec<String>, BackupError> {
        let objects = self.store.list(Some(&Path::from(BACKUPS)));
        let ids = objects.try_filter_map(async |object| {
            let name = object.location.filename().unwrap_or_default();
            Ok(name.strip_suffix(MANIFEST).map(str::to_owned))
        });
        let ids: Result<Vec<String>, Error> = ids.try_collect().await;
        let mut ids = ids.map_err(self.failed("list backups"))?;
        ids.sort_unstable();
        Ok(ids)
    }

    async fn manifest(&self, id: &str) -> Result<Manifest, BackupError> {
        let bytes = self.bytes(&manifest_of(id), "read a manifest").await?;
        let damaged = |source| BackupError::Manifest {
            id: id.to_owned(),
            place: self.place.clone(),
            source,
        };
        let Format { format } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if format != u64::from(FORMAT) {
            let id = id.to_owned();
            return Err(BackupError::Newer { id, format });
        }
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    async fn bytes(&self, object: &Path, act: &'static str) -> Result<Bytes, BackupError> {
        let read = async { self.store.get(object).await?.bytes().await };
        read.await.map_err(self.failed(act))
    }

    fn failed(&self, act: &'static str) -> impl FnOnce(Error) -> BackupError {
        let place = self.place.clone();
        move |error| BackupError::Store {
            act,
            place,
            // Its text has those of its sources, which would be told twice as sources of this one.
            problem: error.to_string(),
        }
    }
}

fn folder(place: &str) -> Result<Arc<dyn ObjectStore>, BackupError> {
    let folder = path::absolute(place).map_err(|error| unusable(place, &error))?;
    if !folder.is_dir() {
        return Err(unusable(place, &"there is no such folder"));
    }
    let store = LocalFileSystem::new_with_prefix(folder);
    let store = store.map_err(|error| unusable(place, &error))?;
    Ok(Arc::new(store.with_fsync(true)))
}

/// A bucket, and what the environment says of it: `AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and others.
#[cfg(feature = "s3")]
fn bucket(place: &str, rest: &str) -> Result<Arc<dyn ObjectStore>, BackupError> {
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // The HTTP client takes what the process has. Who has set another one keeps it.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let prefix = Path::parse(prefix).map_err(|error| unusable(place, &error))?;
    let store = object_store::aws::AmazonS3Builder::from_env().with_bucket_name(bucket);
    let store = store.build().map_err(|error| unusable(place, &error))?;
    Ok(Arc::new(object_store::prefix::PrefixStore::new(
        store, prefix,
    )))
}

#[cfg(not(feature = "s3"))]
fn bucket(place: &str, _: &str) -> Result<Arc<dyn ObjectStore>, BackupError> {
    let problem = "this program is built without `s3`: build it with --features s3";
    Err(unusable(place, &problem))
}

fn unusable(place: &str, problem: &dyn std::fmt::Display) -> BackupError {
    BackupError::Place {
        place: place.to_owned(),
        problem: problem.to_string(),
    }
}

/// Folders of a thousand files or so are quick to list, and there are 256 of them.
fn object_of(name: SegmentHash) -> Path {
    let name = name.to_string();
    Path::from_iter([SEGMENTS, &name[..2], &format!("{name}{SEGMENT}")])
}

/// The segment that an object holds. There may be others, such as one that is half written.
fn segment_of(object: &Path) -> Option<SegmentHash> {
    let name = object.filename()?.strip_suffix(SEGMENT)?;
    name.parse().ok()
}

fn manifest_of(id: &str) -> Path {
    Path::from_iter([BACKUPS, &format!("{id}{MANIFEST}")])
}
