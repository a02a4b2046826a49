// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	"weir.dev/weir/internal/behaviour"
)

// mend has somebody else write load balancers as they are whose last write has failed, where
// Azure refuses their pools until then: no write of a pool could end that.
func (s *Stage) mend() error {
	if s.emu.Behaviour().FailedParent != behaviour.Refused {
		return nil
	}
	for _, id := range s.balances {
		body, ok := s.emu.Get(id.String())
		if !ok || !bytes.Contains(body, []byte(`"Failed"`)) {
			continue
		}
		if err := s.putByOthers(id.String(), body); err != nil {
			return err
		}
		s.mu.Lock()
		s.touch()
		s.mu.Unlock()
	}
	return nil
}

// putByOthers has somebody else write a resource.
func (s *Stage) putByOthers(id string, body []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, "http://azure"+id+"?api-version=2025-05-01", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer somebody-else")
	resp, err := s.emu.Transport().Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("somebody else's PUT %s: %s", id, resp.Status)
	}
	return resp.Body.Close()
}
