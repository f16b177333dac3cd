//! Users and passwords in a Secret, or in a folder that has the form of one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cloudkeel_api::Secret;
use cloudkeel_toolkit::settings::Ini;

type Data = BTreeMap<String, Secret>;

/// The user and the password of a vCenter, by any of the forms that the Go CCM and the CSI driver read:
///
/// * `<server>.username` and `<server>.password`;
/// * `server_<id>`, `username_<id>` and `password_<id>`, for servers whose names no key can have;
/// * a file such as `csi-vsphere.conf`, with a section `[VirtualCenter "<server>"]`.
pub(crate) fn find(data: &Data, server: &str) -> Result<(String, Secret), String> {
    let value = |key: String| data.get(&key).map(without_newline);
    let pair = |user: String, password: String| value(user).zip(value(password));
    if let Some((user, password)) = pair(format!("{server}.username"), format!("{server}.password"))
    {
        return complete(&user, password, server);
    }
    let by_id = data.iter().find_map(|(key, value)| {
        let id = key.strip_prefix("server_")?;
        let is_ours = without_newline(value).expose() == server;
        is_ours.then(|| pair(format!("username_{id}"), format!("password_{id}")))?
    });
    if let Some((user, password)) = by_id {
        return complete(&user, password, server);
    }
    let files = data.iter().filter(|(key, _)| {
        let extension = Path::new(key).extension();
        extension.is_some_and(|extension| extension == "conf")
    });
    let mut sections = files.filter_map(|(_, text)| in_file(text.expose(), server));
    if let Some((user, password)) = sections.next() {
        return complete(&user.into(), password.into(), server);
    }
    if data.contains_key(&format!("{server}.vc-session-manager-url")) {
        return Err(format!(
            "`{server}.vc-session-manager-url`: sessions of a session manager are not supported, give \
             `{server}.username` and `{server}.password`"
        ));
    }
    let keys: Vec<_> = data.keys().map(String::as_str).collect();
    Err(format!(
        "expected the keys `{server}.username` and `{server}.password`, found {}",
        if keys.is_empty() {
            "none".to_owned()
        } else {
            keys.join(", ")
        }
    ))
}

fn complete(user: &Secret, password: Secret, server: &str) -> Result<(String, Secret), String> {
    if user.is_empty() || password.is_empty() {
        return Err(format!("the user or the password of {server} is empty"));
    }
    Ok((user.expose().to_owned(), password))
}

/// What the configuration of the CSI driver says of a server.
fn in_file(text: &str, server: &str) -> Option<(String, String)> {
    let ini = Ini::parse(text).ok()?;
    let get = |key: &str| {
        let own = ini.last("VirtualCenter", Some(server), key);
        own.or_else(|| ini.last("Global", None, key))
    };
    let is_there = ini.subsections("VirtualCenter").contains(&server);
    get("user").zip(get("password")).filter(|_| is_there)
}

/// Secrets that were made from files often end in a newline.
fn without_newline(value: &Secret) -> Secret {
    let text = value.expose();
    text.strip_suffix('\n').unwrap_or(text).into()
}

/// A folder as the data of a Secret.
pub(crate) fn read_directory(path: &Path) -> Result<Data, String> {
    let mut data = Data::new();
    for file in files_in(path) {
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let text = std::fs::read_to_string(&file);
        let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
        data.insert(name.unwrap_or_default(), text.into());
    }
    Ok(data)
}

/// The files of a folder, without the hidden ones that mounts of Secrets have.
pub(crate) fn files_in(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        let is_hidden = name.is_some_and(|name| name.starts_with('.'));
        !is_hidden && path.is_file()
    });
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests;
