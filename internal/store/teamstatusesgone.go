package store

import (
	"database/sql"
	"errors"
)

// unsentFor is how long the parts of a file wait for the rest, and statuses for a run of their commit.
const unsentFor = "30 days"

// ofNoRun is so of a status where no run of its commit is left in its project.
const ofNoRun = "NOT EXISTS (SELECT 1 FROM recorded JOIN tags ON tags.run = recorded.id AND tags.key = '" + ProjectTag +
	"' AND tags.value = statuses.project WHERE lower(recorded.git_commit) = statuses.commit)"

// statusesOf gives what deletes the statuses of a run's commit, once the run is gone, where it was the last one of the
// commit in its project.
func statusesOf(s *session, run string) (forget func() error, err error) {
	var project, commit string
	switch err := s.row("SELECT statuses.project, statuses.commit FROM recorded JOIN tags ON tags.run = recorded.id AND tags.key = ? "+
		"JOIN statuses ON statuses.project = tags.value AND statuses.commit = lower(recorded.git_commit) WHERE recorded.id = ? LIMIT 1",
		ProjectTag, run).Scan(&project, &commit); {
	case errors.Is(err, sql.ErrNoRows):
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	}
	return func() error {
		_, err := s.exec("DELETE FROM statuses WHERE project = ? AND commit = ? AND "+ofNoRun, project, commit)
		return err
	}, nil
}

// dropOldStatuses deletes what was said of commits that no run came of, or whose runs went to another project.
func dropOldStatuses(s *session) error {
	_, err := s.exec("DELETE FROM statuses WHERE updated < now() - interval '" + unsentFor + "' AND " + ofNoRun)
	return err
}
