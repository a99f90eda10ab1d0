use crate::field::{DB, Field};

const FUNCTIONS: &str = r#"
CREATE TABLE public.found (language text, left_by text, who text DEFAULT current_user);
GRANT ALL ON public.found TO PUBLIC;
CREATE FUNCTION public.perl(j awty.future_job) RETURNS timestamptz LANGUAGE plperl AS $$
my $left = quote_nullable($_SHARED{who});
spi_exec_query("INSERT INTO public.found VALUES ('plperl', $left)");
$_SHARED{who} = spi_exec_query('SELECT current_user AS who')->{rows}[0]{who};
return undef;
$$;
CREATE FUNCTION public.python(j awty.future_job) RETURNS timestamptz LANGUAGE plpython3u AS $$
import sys
for keep in (GD, SD, sys.__dict__):
    plpy.execute("INSERT INTO public.found VALUES ('plpython3u', %s)" % plpy.quote_nullable(keep.get('who')))
    keep['who'] = plpy.execute('SELECT current_user AS who')[0]['who']
return None
$$;"#;

/// In one process, PL/Perl uses an interpreter for each role, but PL/Python uses one interpreter for all roles.
#[test]
fn no_interpreter_is_shared_between_roles() {
    let field = Field::new();
    for (language, package) in [("plperl", "plperl"), ("plpython3u", "plpython3")] {
        let known: bool = field
            .one("postgres", &format!("SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = '{language}')"));
        assert!(
            known,
            "{language} is not installed, so this was not tested: apt-get install postgresql-{package}-15 (or your version)"
        );
        field.sql("postgres", &format!("CREATE EXTENSION {language}"));
    }
    field.sql("postgres", FUNCTIONS);
    let mut ids = Vec::new();
    for role in ["alice", "mallory"] {
        for function in ["perl", "python"] {
            field.sql(
                role,
                &format!("SELECT awty.register('{role}_{function}', 'public.{function}', max_attempts => 1)"),
            );
        }
        let schedule = format!(
            "SELECT awty.schedule('thing', key::text, '{role}_' || function, at => now())
             FROM generate_series(1, 10) AS key, unnest('{{perl,python}}'::text[]) AS function"
        );
        let rows = field.client(role).query(&schedule, &[]).unwrap();
        ids.extend(rows.iter().map(|row| row.get::<_, i64>(0)));
    }
    ids.into_iter().for_each(|id| field.end_of(id).is_done());
    let foreign =
        field.cluster.psql(DB, "SELECT DISTINCT language, who, left_by FROM public.found WHERE left_by <> who");
    assert_eq!(foreign.trim(), "", "found in an interpreter, left by another role");
    // Verifies that each role finds the names that its own earlier runs left. Otherwise, the assertion above would also
    // hold if no run left any names.
    let own =
        field.cluster.psql(DB, "SELECT DISTINCT language, who FROM public.found WHERE left_by = who ORDER BY 1, 2");
    assert_eq!(own.trim(), "plperl|alice\nplperl|mallory\nplpython3u|alice\nplpython3u|mallory");
}
