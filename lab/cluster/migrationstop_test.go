// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/skumigration/phase"
)

// requestMigration sends a user request like weir migrate stop, resume and run.
func (s *Stage) requestMigration(change func(*phase.UserRequests)) error {
	return store.UpdateRequests(ctx, s.userClient, weirNamespace, func(r store.Record) (phase.UserRequests, error) {
		requested := r.MigrationRequests()
		change(&requested)
		return requested, nil
	})
}

// writtenSince returns the Azure writes after a sequence number, and the last number.
func (s *Stage) writtenSince(seq uint64) (writes []string, last uint64) {
	for _, c := range s.emulator.Calls() {
		last = max(last, c.Seq)
		if c.Seq > seq && c.Method != http.MethodGet {
			writes = append(writes, c.Method+" "+c.Path)
		}
	}
	return writes, last
}

// After a stop request nothing is written to Azure, however often Weir is killed; after resuming,
// all addresses are kept.
func TestFromBasicToStandardWithStops(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			runStage(t, Options{Seed: seed, Configure: func(c *config.Config) { enableMigration(c); useInterfaces(c) }}, func(s *Stage) {
				for n := range 3 {
					failOn(s.AddNode(n))
				}
				failOn(s.addBasic(0, 1, 2))
				s.Start()
				s.Sleep(5 * time.Second) // until there is a record
				for n := range 4 {
					s.Sleep(time.Duration(r.IntN(60)) * time.Second)
					failOn(s.requestMigration(func(a *phase.UserRequests) { a.Stop = &phase.UserRequest{At: time.Now().UTC(), By: "jane"} }))
					s.Sleep(5 * time.Minute) // running requests have ended
					_, stands := s.writtenSince(0)
					s.KillProcess(0)
					s.Sleep(10 * time.Minute)
					if more, _ := s.writtenSince(stands); len(more) > 0 {
						failOn(fmt.Errorf("it was stopped, and %q were sent", more))
					}
					if n == 0 && !strings.Contains(string(s.emulator.Snapshot()), `"Basic"`) {
						failOn(errors.New("it was stopped while machines leave, and has come to its end"))
					}
					failOn(s.requestMigration(func(a *phase.UserRequests) { a.Stop = nil }))
				}
				failOn(s.WaitInSync(30 * time.Minute))
				failOn(s.checkMigrated())
			})
		})
	}
}
