// SPDX-License-Identifier: Apache-2.0

package apiserver

import "testing"

// TestAnswersAsTheRealOneDid has the exchanges that were had with kube-apiserver. Whether those
// that are recorded are still its answers, TestRecordedAnswersAreKubeAPIServers says.
func TestAnswersAsTheRealOneDid(t *testing.T) {
	s := newServer(t)
	for _, sc := range Scenarios() {
		t.Run(sc.Slug(), func(t *testing.T) {
			t.Parallel()
			sc.Differ(t, sc.Recorded(t), sc.Hold(t, s.RESTConfig("compare")))
		})
	}
}
