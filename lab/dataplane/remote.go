// SPDX-License-Identifier: Apache-2.0

package dataplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"weir.dev/weir/lab/armemu"
)

// remoteAge is how old the rules of another process's emulator may be.
const remoteAge = 50 * time.Millisecond

// AdminSource reads the emulator of another process by its admin API, e.g. http://127.0.0.1:1234/_emu/.
func AdminSource(client *http.Client, admin string) Source {
	var (
		mu    sync.Mutex
		at    time.Time
		rules []armemu.ForwardingRule
	)
	return func(ctx context.Context) ([]armemu.ForwardingRule, error) {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < remoteAge {
			return rules, nil
		}
		read, err := readForwarding(ctx, client, admin)
		if err != nil {
			return nil, err
		}
		at, rules = time.Now(), read
		return rules, nil
	}
}

func readForwarding(ctx context.Context, client *http.Client, admin string) ([]armemu.ForwardingRule, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, admin+"forwarding", nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %sforwarding: %s", admin, answer.Status)
	}
	var report struct{ Rules []armemu.ForwardingRule }
	if err := json.NewDecoder(answer.Body).Decode(&report); err != nil {
		return nil, fmt.Errorf("GET %sforwarding: %w", admin, err)
	}
	return report.Rules, nil
}
