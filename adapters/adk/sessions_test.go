package adk_test

import (
	"path/filepath"
	"testing"

	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/session/database"
	"google.golang.org/adk/v2/session/sessiontestsuite"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/convlog/convlog/adapters/adk"
	"github.com/convlog/convlog/internal/adaptertest"
)

// The suite with and without ids of events that the service assigns: the log keeps the ids of the program.
func TestSuite(t *testing.T) {
	for _, assigned := range []bool{false, true} {
		opts := sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true, ProvidesServerAssignedEventID: assigned}
		for name, store := range adaptertest.Stores {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sessiontestsuite.RunServiceTests(t, opts, func(t *testing.T) session.Service { return adk.New(adaptertest.Open(t, store(t))).Sessions })
			})
		}
	}
}

// The suite finds the services of ADK right, too.
func TestSuiteControl(t *testing.T) {
	opts := sessiontestsuite.SuiteOptions{SupportsUserProvidedSessionID: true}
	t.Run("memory", func(t *testing.T) {
		sessiontestsuite.RunServiceTests(t, opts, func(*testing.T) session.Service { return session.InMemoryService() })
	})
	t.Run("database", func(t *testing.T) {
		sessiontestsuite.RunServiceTests(t, opts, func(t *testing.T) session.Service { return sqlService(t, filepath.Join(t.TempDir(), "adk.db")) })
	})
}

// sqlService is ADK's own service over a SQLite file.
func sqlService(t testing.TB, file string) session.Service {
	t.Helper()
	s, err := database.NewSessionService(sqlite.Dialector{DriverName: "sqlite", DSN: file}, &gorm.Config{Logger: logger.Discard, PrepareStmt: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := database.AutoMigrate(s); err != nil {
		t.Fatal(err)
	}
	return s
}
