//! A walk through one journal: commands in, pages out.

use std::io::{BufRead, Seek};

use journal::ReadError;

use crate::command::{Command, CommandError, HELP, Place, Target, Way};
use crate::page::Page;
use crate::show;
use crate::survey::Mark;
use crate::table;
use crate::tape::{Scene, Tape};
use crate::text::counted;
use crate::trail::Trail;

/// Why a command was not done.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    /// It is none, or nothing that could be done here.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The journal cannot be read any more.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A page: lines of at most [`crate::WIDTH`] columns.
    Page(String),
    /// Leave.
    Quit,
}

/// Whether a record is one to stop at.
type Wanted<'a> = Box<dyn Fn(u64, &Mark) -> bool + 'a>;

/// A walk through one journal.
#[derive(Debug)]
pub struct Session<R> {
    tape: Tape<R>,
    scene: Scene,
    focus: Option<String>,
    colour: bool,
}

impl<R: BufRead + Seek> Session<R> {
    /// Opens a journal at its first record.
    ///
    /// # Errors
    ///
    /// It is damaged, or no journal.
    pub fn open(input: R, colour: bool) -> Result<Self, ReadError> {
        let mut tape = Tape::open(input)?;
        let scene = tape.scene(0, None)?;
        Ok(Session { tape, scene, focus: None, colour })
    }

    /// Looks at one node.
    ///
    /// # Errors
    ///
    /// The journal has no node of that name.
    pub fn look_at(&mut self, node: &str) -> Result<(), CommandError> {
        self.known(node)?;
        self.focus = Some(node.to_owned());
        Ok(())
    }

    /// What the journal is, and the first record.
    pub fn opening(&self) -> String {
        let mut page = Page::new(self.colour);
        let survey = self.tape.survey();
        let count = |wanted: &dyn Fn(&Mark) -> bool| survey.marks.iter().filter(|mark| wanted(mark)).count() as u64;
        page.say(&format!(
            "{}, {}, {}, {}; {}, {}",
            counted(survey.marks.len() as u64, "record"),
            counted(survey.starts.len() as u64, "start"),
            counted(survey.names.all().len() as u64, "node"),
            match count(&|mark| mark.label == "pass") {
                1 => "1 pass".into(),
                passes => format!("{passes} passes"),
            },
            counted(count(&|mark| mark.failed), "failure"),
            counted(survey.broken.len() as u64, "violation"),
        ));
        page.gap();
        self.place(&mut page);
        page.finish()
    }

    /// The prompt: where one is, and whom one looks at.
    pub fn prompt(&self) -> String {
        let focus = self.focus.as_ref().map(|node| format!(" {node}")).unwrap_or_default();
        format!("{}/{}{focus}> ", self.scene.line.seq, self.tape.last())
    }

    /// The bytes of a torn record at the end.
    pub fn torn_bytes(&self) -> u64 {
        self.tape.torn_bytes()
    }

    /// Does one command.
    ///
    /// # Errors
    ///
    /// It is none, or it names what there is not; nothing changed then. Or the journal cannot be read any more.
    pub fn execute(&mut self, line: &str) -> Result<Answer, StepError> {
        let mut page = Page::new(self.colour);
        match Command::parse(line)? {
            Command::Nothing => {}
            Command::Quit => return Ok(Answer::Quit),
            Command::Help => HELP.lines().for_each(|line| page.line(line)),
            Command::Show => self.place(&mut page),
            Command::Nodes(wanted) => show::nodes(&self.scene, wanted.as_deref(), &mut page),
            Command::Record { all } => show::record(&self.scene, all, &mut page),
            Command::Rules => self.rules(&mut page),
            Command::Rule(id) => self.rule(&id, &mut page)?,
            Command::Row => self.row(&mut page)?,
            Command::Focus(None) => {
                self.focus = None;
                self.place(&mut page);
            }
            Command::Focus(Some(node)) => {
                self.look_at(&node)?;
                self.place(&mut page);
            }
            Command::Go(place) => {
                let seq = self.seq(place)?;
                self.go(seq)?;
                self.place(&mut page);
            }
            Command::Find(way, target) => match self.find(way, &target)? {
                Some(seq) => {
                    self.go(seq)?;
                    self.place(&mut page);
                }
                None => page.say(match way {
                    Way::Forward => "no such record after this one",
                    Way::Back => "no such record before this one",
                }),
            },
        }
        Ok(Answer::Page(page.finish()))
    }

    fn go(&mut self, seq: u64) -> Result<(), ReadError> {
        if seq != self.scene.line.seq {
            self.scene = self.tape.scene(seq, Some(&self.scene))?;
        }
        Ok(())
    }

    /// The page of this place.
    fn place(&self, page: &mut Page) {
        let survey = self.tape.survey();
        let seq = self.scene.line.seq;
        let touches = self.tape.mark(seq).map_or(&[][..], |mark| &mark.touches);
        let mut touched: Vec<&str> =
            touches.iter().filter_map(|touch| Some(survey.names.all().get(touch.name as usize)?.as_str())).collect();
        touched.dedup();
        let broken = survey.broken.get(&seq).map_or(&[][..], Vec::as_slice);
        show::show(&self.scene, self.tape.last(), self.focus.as_deref(), &touched, broken, page);
    }

    fn known(&self, node: &str) -> Result<u32, CommandError> {
        self.tape.survey().names.find(node).ok_or_else(|| CommandError::NoNode { name: node.to_owned() })
    }

    fn seq(&self, place: Place) -> Result<u64, CommandError> {
        let (marks, last) = (&self.tape.survey().marks, self.tape.last());
        let first_at = |from: u64, at_ms: u64| {
            let begin = usize::try_from(from).unwrap_or(usize::MAX);
            // Clocks go back, too: the first record that is late enough.
            let found = marks.iter().enumerate().skip(begin).find(|(_, mark)| mark.at_ms >= at_ms);
            found.map_or(last, |(at, _)| at as u64)
        };
        match place {
            Place::Record(seq) if seq > last => Err(CommandError::NoRecord { seq, last }),
            Place::Record(seq) => Ok(seq),
            Place::Last => Ok(last),
            Place::Instant(at_ms) => Ok(first_at(0, at_ms)),
            Place::After(ms) => {
                let start = self.tape.start_of(self.scene.line.seq);
                let begun = self.tape.mark(start).map_or(0, |mark| mark.at_ms);
                Ok(first_at(start, begun.saturating_add(ms)))
            }
        }
    }

    /// The nearest record that way that is one.
    fn find(&mut self, way: Way, target: &Target) -> Result<Option<u64>, StepError> {
        let (here, last) = (self.scene.line.seq, self.tape.last());
        let survey = self.tape.survey();
        let wanted: Wanted<'_> = match target {
            Target::Records(count) => {
                // As far as there is something.
                let seq = match way {
                    Way::Forward => here.saturating_add(*count).min(last),
                    Way::Back => here.saturating_sub(*count),
                };
                return Ok((seq != here || *count == 0).then_some(seq));
            }
            Target::Text(text) => return self.search(way, text),
            Target::Pass => Box::new(|_, mark| mark.label == "pass"),
            Target::Kind(kind) => Box::new(move |_, mark| mark.label == *kind || mark.of == Some(*kind)),
            Target::Failure => Box::new(|_, mark| mark.failed),
            Target::Violation => Box::new(|seq, _| survey.broken.contains_key(&seq)),
            Target::Node(node) => {
                let node = self.known(node.as_ref().or(self.focus.as_ref()).ok_or(CommandError::NoFocus)?)?;
                Box::new(move |_, mark| mark.touches.iter().any(|touch| touch.name == node))
            }
            Target::Rule(id, node) => {
                let node = node.as_ref().map(|node| self.known(node)).transpose()?;
                let rule = match survey.rules.find(id) {
                    Some(number) => number + 1,
                    // It may be one that never decided anything.
                    None if survey.declared.contains(id) => return Ok(None),
                    None => return Err(CommandError::NoRule { id: id.clone() }.into()),
                };
                let of = move |name: u32| node.is_none_or(|node| node == name);
                Box::new(move |_, mark| mark.touches.iter().any(|touch| touch.rule == rule && of(touch.name)))
            }
        };
        let here = usize::try_from(here).unwrap_or(usize::MAX);
        let mut marks = survey.marks.iter().enumerate().map(|(at, mark)| (at as u64, mark));
        let hit = |(seq, mark): &(u64, &Mark)| wanted(*seq, mark);
        Ok(match way {
            Way::Forward => marks.skip(here + 1).find(hit),
            Way::Back => marks.by_ref().take(here).filter(hit).last(),
        }
        .map(|(seq, _)| seq))
    }

    /// The nearest record that way in whose words, or in whose line, the text occurs.
    fn search(&mut self, way: Way, text: &str) -> Result<Option<u64>, StepError> {
        let here = self.scene.line.seq;
        // Names follow from what was before, so also the way back is read forwards.
        let (mut trail, first, end) = match way {
            Way::Forward => (self.scene.after.clone(), here + 1, self.tape.last() + 1),
            Way::Back => (Trail::default(), 0, here),
        };
        let mut hit = None;
        if first >= end {
            return Ok(None);
        }
        let mut reader = self.tape.reader(first)?;
        for seq in first..end {
            let Some(line) = reader.next_line()? else { break };
            // Where it gets lost is known from the survey.
            let _ = trail.follow(&line);
            let words = trail.words().record(&line.entry, line.at_ms).to_lowercase();
            let raw = || serde_json::to_string(&line.entry).unwrap_or_default().to_lowercase();
            if words.contains(text) || raw().contains(text) {
                hit = Some(seq);
                if way == Way::Forward {
                    break;
                }
            }
        }
        Ok(hit)
    }

    fn row(&self, page: &mut Page) -> Result<(), CommandError> {
        let touched = self.tape.mark(self.scene.line.seq).map_or(&[][..], |mark| &mark.touches);
        let names = self.tape.survey().names.all();
        let only = match touched {
            [one] => names.get(one.name as usize),
            _ => None,
        };
        let node = self.focus.as_ref().or(only).ok_or(CommandError::NoFocus)?;
        match show::told(&self.scene, node) {
            Some((id, asked)) => {
                page.title(&format!("{node}: {id} {}", table::decided(&asked.decision)));
                if !table::is_ladder(self.scene.after.rules()) {
                    page.aside("The decider is another one; this is what the built-in table would have matched:");
                }
                table::show(&asked, page);
            }
            None => page.aside(&format!("nothing was decided about {node} in this record; `p pass` goes back to one")),
        }
        Ok(())
    }

    fn rules(&self, page: &mut Page) {
        for rule in self.scene.after.rules() {
            page.row(&[(&rule.id, 6), (&rule.sentence, 0)], false);
        }
    }

    fn rule(&self, id: &str, page: &mut Page) -> Result<(), CommandError> {
        let rules = self.scene.after.rules();
        let rule = rules.iter().find(|rule| rule.id == id).ok_or_else(|| CommandError::NoRule { id: id.to_owned() })?;
        page.title(&format!("{id} {}", rule.sentence));
        if table::is_ladder(rules) {
            for row in table::rows(id) {
                page.indented("  if      ", &table::condition(row));
                page.indented("  then    ", &table::verdict(row));
                page.indented("  because ", row.reason);
            }
        } else {
            page.aside("The decider is another one; its table is not known here.");
        }
        Ok(())
    }
}
