package opencode

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/convlog/convlog/internal/rawjson"
	"github.com/convlog/convlog/interop/internal/records"
)

// errNewerMessages rejects a session whose messages are in a table of a newer version.
var errNewerMessages = errors.New("its messages are in the table session_message, which this version cannot read")

// rowReader makes the document of a session of its rows.
type rowReader struct {
	limit    int64   // of the document, in bytes
	size     int64   // of the rows so far
	rejected []error // rows that are no JSON
}

// session reads a session in one transaction; nil if the database lacks it.
func (r *rowReader) session(ctx context.Context, db *sql.DB, id string) (jsontext.Value, error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it has read only
	var info jsontext.Value
	err = each(ctx, tx, "SELECT * FROM session WHERE id = ?", id, func(row row) error {
		info = row.info()
		return nil
	})
	if err != nil || info == nil {
		return nil, err
	}
	parts, err := r.parts(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	var messages []jsontext.Value
	err = each(ctx, tx, "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", id, func(row row) error {
		message := row.text("id")
		v, err := r.data(row, member("id", message), member("sessionID", id))
		if err == nil && v != nil {
			messages = append(messages, rawjson.Object([]rawjson.Member{
				{Name: "info", Value: v}, {Name: "parts", Value: rawjson.Array(parts[message])},
			}))
		}
		return err
	})
	if err == nil && len(messages) == 0 && r.isNewer(ctx, tx, id) {
		err = errNewerMessages
	}
	if err != nil {
		return nil, err
	}
	return rawjson.Object([]rawjson.Member{{Name: "info", Value: info}, {Name: "messages", Value: rawjson.Array(messages)}}), nil
}

// isNewer reports whether a newer version of OpenCode wrote the messages of a session.
func (r *rowReader) isNewer(ctx context.Context, tx *sql.Tx, session string) bool {
	var n int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM session_message WHERE session_id = ?", session).Scan(&n)
	return err == nil && n > 0 // older versions lack the table
}

// parts are the parts of a session, by message.
func (r *rowReader) parts(ctx context.Context, tx *sql.Tx, session string) (map[string][]jsontext.Value, error) {
	all := map[string][]jsontext.Value{}
	const query = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id"
	return all, each(ctx, tx, query, session, func(row row) error {
		message := row.text("message_id")
		v, err := r.data(row, member("id", row.text("id")), member("sessionID", session), member("messageID", message))
		if err == nil && v != nil {
			all[message] = append(all[message], v)
		}
		return err
	})
}

// data is the object in the column data, with more members. It rejects a row without an
// object, and returns nil. An error says that the session is too long.
func (r *rowReader) data(row row, more ...rawjson.Member) (jsontext.Value, error) {
	v := jsontext.Value(row.text("data"))
	if r.size += int64(len(v)); r.size > r.limit {
		return nil, &records.TooLongError{Bytes: r.size, Limit: r.limit}
	}
	members, err := rawjson.Members(v)
	if err == nil && records.TooDeep(v) {
		err = fmt.Errorf("nested in more than %d levels", records.MaxDepth)
	}
	if err != nil {
		r.rejected = append(r.rejected, fmt.Errorf("row %s: %w", row.text("id"), err))
		return nil, nil
	}
	for _, m := range more {
		members = rawjson.Set(members, m.Name, m.Value)
	}
	return rawjson.Object(members), nil
}

// row is a row of a table, by column.
type row struct {
	columns []string
	values  []any
}

// each calls do with each row of a query.
func each(ctx context.Context, tx *sql.Tx, query, id string, do func(row) error) error {
	rows, err := tx.QueryContext(ctx, query, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		if err := do(row{columns, values}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// text is the text of a column; empty if it has none.
func (r row) text(column string) string {
	for i, name := range r.columns {
		if name != column {
			continue
		}
		switch v := r.values[i].(type) {
		case string:
			return v
		case []byte:
			return string(v)
		}
	}
	return ""
}

// groups are the objects that several columns of a session make, by the prefix of the
// columns.
var groups = []string{"time", "tokens_cache", "tokens", "summary", "share"}

// info makes the info of a session. A column project_id becomes projectID, and
// time_created the member created of time.
func (r row) info() jsontext.Value {
	var info []rawjson.Member
	grouped := map[string][]rawjson.Member{}
	for i, column := range r.columns {
		v := value(r.values[i])
		if v == nil {
			continue
		}
		group, name := groupOf(column)
		if group == "" {
			if stem, ok := strings.CutSuffix(column, "_id"); ok {
				name = stem + "ID"
			}
			info = append(info, rawjson.Member{Name: name, Value: v})
			continue
		}
		grouped[group] = append(grouped[group], rawjson.Member{Name: name, Value: v})
	}
	if cache := grouped["tokens_cache"]; cache != nil {
		grouped["tokens"] = append(grouped["tokens"], rawjson.Member{Name: "cache", Value: rawjson.Object(cache)})
	}
	for _, name := range []string{"summary", "share", "tokens", "time"} {
		if members := grouped[name]; members != nil {
			info = append(info, rawjson.Member{Name: name, Value: rawjson.Object(members)})
		}
	}
	return rawjson.Object(info)
}

// groupOf splits the name of a column into a group and the rest; the group is empty if the
// column has none.
func groupOf(column string) (group, rest string) {
	for _, group := range groups {
		if rest, ok := strings.CutPrefix(column, group+"_"); ok {
			return group, rest
		}
	}
	return "", column
}

// value is the JSON of a column: an object or an array as it is. It is nil for NULL.
func value(v any) jsontext.Value {
	switch of := v.(type) {
	case nil:
		return nil
	case []byte:
		v = string(of)
	}
	if text, ok := v.(string); ok {
		raw := jsontext.Value(text)
		if kind := raw.Kind(); (kind == '{' || kind == '[') && raw.IsValid() {
			return raw
		}
	}
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil
	}
	return b
}

func member(name, text string) rawjson.Member { return rawjson.Member{Name: name, Value: value(text)} }
