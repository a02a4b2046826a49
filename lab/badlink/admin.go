// SPDX-License-Identifier: Apache-2.0

package badlink

import (
	"encoding/json"
	"fmt"
	"net/http"
)

type adminState struct {
	Network
	Counters
}

// Admin serves settings and counters; PATCH changes settings. changed may be nil.
func (l *Link) Admin(changed func(Network)) http.Handler {
	show := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(adminState{l.Network(), l.Counters()}) // the client may have disconnected
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", show)
	mux.HandleFunc("PATCH /{$}", func(w http.ResponseWriter, r *http.Request) {
		to := l.Network()
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&to)
		if err != nil {
			err = fmt.Errorf(`%w: give JSON with "away", "bytesPerSecond" or "resetPercent"`, err)
		} else {
			err = to.Validate()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		l.SetNetwork(to)
		if changed != nil {
			changed(to)
		}
		show(w, r)
	})
	return mux
}
