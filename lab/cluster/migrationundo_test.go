// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/k8s/store"
	"weir.dev/weir/internal/skumigration/phase"
)

// requestUndo requests an undo like weir migrate stop --undo.
func (s *Stage) requestUndo() error {
	return store.UpdateRequests(ctx, s.userClient, weirNamespace, func(r store.Record) (phase.UserRequests, error) {
		j, err := r.MigrationJournal()
		if err != nil {
			return phase.UserRequests{}, err
		}
		return r.MigrationRequests().RequestUndo(j, phase.UserRequest{At: time.Now().UTC(), By: "jane"})
	})
}

func (s *Stage) migrationJournal() (phase.Journal, error) {
	r, err := store.Read(ctx, s.userClient, weirNamespace)
	if err != nil {
		return phase.Journal{}, err
	}
	return r.MigrationJournal()
}

// preservedState returns what an undone migration must preserve: the pools of each machine and model, and
// each load balancer with its frontends, rules and probes.
func (s *Stage) preservedState() (map[string]string, error) {
	var resources []struct {
		ID   string         `json:"id"`
		Body map[string]any `json:"body"`
	}
	if err := json.Unmarshal(s.emulator.Snapshot(), &resources); err != nil {
		return nil, err
	}
	got := map[string]string{}
	for _, r := range resources {
		kind := strings.ToLower(r.ID)
		switch {
		case strings.Contains(kind, "/loadbalancers/"):
			properties := r.Body["properties"].(map[string]any)
			for _, part := range []string{"loadBalancingRules", "probes", "frontendIPConfigurations"} {
				text, err := json.Marshal(withoutEtags(properties[part]))
				if err != nil {
					return nil, err
				}
				got[kind+" "+part] = string(text)
			}
			got[kind+" SKU"] = fmt.Sprint(r.Body["sku"])
		case strings.Contains(kind, "/publicipaddresses/"):
			got[kind] = fmt.Sprint(r.Body["properties"].(map[string]any)["ipAddress"], r.Body["sku"])
		case strings.Contains(kind, "/networkinterfaces/"), strings.Contains(kind, "/virtualmachinescalesets/"):
			addMemberships(got, kind, r.Body)
		}
	}
	return got, nil
}

func withoutEtags(of any) any {
	switch of := of.(type) {
	case map[string]any:
		for _, key := range []string{"etag", "provisioningState"} {
			delete(of, key)
		}
		for key, part := range of {
			of[key] = withoutEtags(part)
		}
	case []any:
		for n := range of {
			of[n] = withoutEtags(of[n])
		}
	}
	return of
}

// addMemberships adds the pools of each IP configuration in a resource.
func addMemberships(to map[string]string, at string, of any) {
	switch of := of.(type) {
	case map[string]any:
		if name, ok := of["name"].(string); ok {
			at += "/" + name
		}
		if list, ok := of["loadBalancerBackendAddressPools"].([]any); ok {
			var ids []string
			for _, p := range list {
				ids = append(ids, strings.ToLower(p.(map[string]any)["id"].(string)))
			}
			to[at] = strings.Join(slices.Sorted(slices.Values(ids)), " ")
		}
		for key, part := range of {
			if key == "properties" || strings.HasPrefix(key, "network") || strings.HasPrefix(key, "virtualMachine") || key == "ipConfigurations" || key == "instances" {
				addMemberships(to, at, part)
			}
		}
	case []any:
		for _, part := range of {
			addMemberships(to, at, part)
		}
	}
}

// diffPreserved returns what changed.
func (s *Stage) diffPreserved(before map[string]string) error {
	are, err := s.preservedState()
	if err != nil || maps.Equal(are, before) {
		return err
	}
	for key, single := range before {
		if are[key] != single {
			return fmt.Errorf("%s was\n%s\nand is\n%s", key, single, are[key])
		}
	}
	return fmt.Errorf("there is more than there was: %v, %v", before, are)
}

// addRandomFaults injects random Azure failures and lost responses.
func (s *Stage) addRandomFaults(r *rand.Rand) error {
	var faults []string
	for _, kind := range []string{"put", "patch", "action", "delete", "list", "get", "poll"} {
		action := []string{"{status: 429, code: TooManyRequests, headers: {Retry-After: '7'}}", "{status: 500, code: InternalServerError}", "{drop: true}", "{drop: true, applied: true}"}[r.IntN(4)]
		faults = append(faults, fmt.Sprintf("{name: fault, match: {path: '**', kind: %s, probability: 0.2, maxMatches: 4}, action: %s}", kind, action))
	}
	return s.AzureFaults(faults...)
}

func (s *Stage) nicOf(node int) string { return network + "networkInterfaces/" + nodeName(node) }

// An undo at any time, with faults and kills, is either rejected and the migration completes, or
// restores every machine and address until a user requests a migration again, which completes
// normally.
func TestFromBasicToStandardAndBack(t *testing.T) {
	back, ends, count := 0, 0, max(*seeds/3, 1)
	if testing.Short() {
		count = min(count, 3)
	}
	for seed := range uint64(count) { //nolint:gosec // small
		seed += *firstSeed
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			kinds := []func(*config.Config){useInterfaces, useAddresses}
			pools := kinds[r.IntN(2)]
			runStage(t, Options{Seed: seed, Machines: true, NoOutboundPool: true, HideDeleted: seed%2 == 0, LatencyScale: latencyScale(seed), Configure: func(c *config.Config) { enableMigration(c); pools(c) }}, func(s *Stage) {
				failOn(s.addBasicOf(machineKinds[r.IntN(len(machineKinds))], 4, basicServices()))
				s.Sleep(time.Minute)
				before, err := s.preservedState()
				failOn(err)
				behind := 0
				for _, in := range before {
					behind += strings.Count(in, "/backendaddresspools/kubernetes")
				}
				if behind < 8 {
					failOn(fmt.Errorf("machines are in %d pools", behind))
				}
				failOn(s.addRandomFaults(r))
				s.Start()
				s.Sleep(5*time.Second + time.Duration(r.IntN(120_000))*time.Millisecond)
				refused := s.requestUndo()
				for range r.IntN(4) {
					s.KillAtRequest(1+r.IntN(40), r.IntN(2) == 0)
					s.Sleep(time.Duration(r.IntN(60)) * time.Second)
				}
				s.KillAtRequest(0, false)
				if refused != nil {
					ends++
					failOn(s.WaitInSync(40 * time.Minute))
					failOn(s.checkMigrated())
					return
				}
				back++
				failOn(s.eventuallyUndone(40 * time.Minute))
				failOn(s.diffPreserved(before))
				s.Sleep(10 * time.Minute)
				failOn(s.diffPreserved(before))
				failOn(s.requestMigration(func(a *phase.UserRequests) { a.Run = &phase.UserRequest{At: time.Now().UTC()} }))
				s.KillProcess(0)
				failOn(s.WaitInSync(40 * time.Minute))
				failOn(s.checkMigrated())
			})
		})
	}
	t.Logf("%d were taken back, and %d ended", back, ends)
	if count >= 10 && (back == 0 || ends == 0) {
		t.Errorf("%d were taken back, and %d ended: want some of each", back, ends)
	}
}

func (s *Stage) eventuallyUndone(limit time.Duration) error {
	for range limit / (5 * time.Second) {
		if j, err := s.migrationJournal(); err != nil || j.CompletedUndo != nil {
			return err
		}
		s.Sleep(5 * time.Second)
	}
	return errors.New("it is not taken back")
}
