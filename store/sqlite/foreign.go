package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/convlog/convlog/eventlog"
)

const listObjects = `SELECT type, name, tbl_name FROM sqlite_schema
	WHERE type IN ('trigger', 'table') AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY type, name`

// ownTables are the tables of a log. SQLite makes the tables that begin with "search_" for the
// text index, and the tables that begin with "sqlite_" for itself.
var ownTables = map[string]bool{
	"sessions": true, "events": true, "blobs": true, "blob_pieces": true, "erasing": true, "catalog": true, "related": true,
	"blob_users": true, "identity": true, "removals": true, "search": true, "search_state": true, "search_data": true, "search_idx": true,
	"search_content": true, "search_docsize": true, "search_config": true,
}

// foreignObjects names the triggers and tables that the log has not made. A trigger can copy
// lines to any table, and a virtual table can keep its rows in another file.
func foreignObjects(c *conn) (all []string, err error) {
	err = c.each(func(row []driver.Value) {
		kind, name, table := fmt.Sprint(row[0]), fmt.Sprint(row[1]), fmt.Sprint(row[2])
		switch {
		case kind == "trigger":
			all = append(all, fmt.Sprintf("trigger %q on table %q", name, table))
		case !ownTables[name]:
			all = append(all, fmt.Sprintf("table %q", name))
		}
	}, 3, listObjects)
	return all, err
}

// checkForeign names the foreign objects.
func (s *Store) checkForeign(_ context.Context, c *conn) (found []eventlog.Defect, err error) {
	all, err := foreignObjects(c)
	for _, object := range all {
		found = append(found, s.fileDefect("foreign", object+" is not of this log, and may have copies of erased content: drop it"))
	}
	return found, err
}

// foreignError reports an erasure that would leave copies.
type foreignError []string

func (e foreignError) Error() string {
	return "nothing was erased: the database has objects of another program, which may copy content: " + strings.Join(e, ", ") + "; drop them first"
}

// Is matches ErrUnsupported.
func (e foreignError) Is(target error) bool { return target == eventlog.ErrUnsupported }

// refuseForeign returns an error if the database has foreign objects.
func (w *writer) refuseForeign() error {
	all, err := foreignObjects(w.conn)
	if err == nil && len(all) > 0 {
		err = rejection{foreignError(all)}
	}
	return err
}
