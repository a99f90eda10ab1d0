use super::args::Args;
use crate::error::{Error, LeaseError, Result};
use crate::settings;
use crate::store::job;
use crate::store::job_option::{self, Field, JobOption, Options};
use awty_core::Width;
use chrono::TimeDelta;

pub fn options(args: &Args, mut options: Options, all: bool) -> Result<Options> {
    if let Some(slot) = args.duration(2, "slot")? {
        check_slot(slot)?;
    }
    for JobOption { name, argument, field, .. } in job_option::all() {
        let (name, index) = (*name, *argument);
        let is_given = match field(&mut options) {
            Field::Time(value) => args.duration(index, name)?.map(|given| *value = given).is_some(),
            Field::OptionalTime(value) => {
                *value = args.duration(index, name)?.or(*value);
                true
            }
            // Turns a negative number into `u32::MAX`, which a later check refuses.
            Field::Count(value) => {
                args.get::<i32>(index).map(|given| *value = u32::try_from(given).unwrap_or(u32::MAX)).is_some()
            }
            Field::Word(value) => args.word(index, name, value)?,
        };
        if all && !is_given {
            return Err(Error::Null { argument: name });
        }
    }
    options.limits.width = job::width(options.slot).map_err(|message| Error::Option { message })?;
    let checked = options.limits.check().and_then(|()| options.terms.check());
    checked.map_err(|error| Error::Option { message: error.to_string() })?;
    Ok(options)
}

fn check_slot(slot: TimeDelta) -> Result<()> {
    let server = settings::slot();
    let refuse = |message: String| Error::Slot { message, server: server.seconds() };
    if slot.subsec_nanos() != 0 {
        return Err(refuse("option \"slot\" must be a whole number of seconds".into()));
    }
    let width = Width::new(slot.num_seconds()).map_err(|error| refuse(error.to_string()))?;
    if !width.is_multiple_of(server) {
        let (width, server) = (width.seconds(), server.seconds());
        return Err(refuse(format!("slot of {width} s is not a multiple of \"awty.slot\", which is {server} s")));
    }
    Ok(())
}

pub fn reset(options: &mut Options, name: String) -> Result<()> {
    match job_option::all().find(|option| option.name == name) {
        Some(option) => option.copy(options, Options::defaults(options.limits.width)),
        None => return Err(Error::UnknownOption { option: name, options: names() }),
    }
    Ok(())
}

fn names() -> String {
    let limits = job_option::LIMITS.iter().map(|option| option.name);
    let names: Vec<_> = limits.chain(["notify"]).chain(job_option::EXTERNAL.iter().map(|option| option.name)).collect();
    let (last, others) = names.split_last().unwrap_or((&"", &[]));
    format!("{} and {last}", others.join(", "))
}

pub fn refuse_external(options: &Options) -> Result<()> {
    let is_default = |option: &JobOption| {
        let mut other = *options;
        option.copy(&mut other, Options::defaults(options.limits.width));
        other == *options
    };
    match job_option::EXTERNAL.iter().find(|option| !is_default(option)) {
        Some(option) => Err(LeaseError::OnlyExternal { option: option.name }.into()),
        None => Ok(()),
    }
}
