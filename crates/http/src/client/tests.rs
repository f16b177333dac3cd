mod auth;
mod budget;
mod retries;
mod support;
