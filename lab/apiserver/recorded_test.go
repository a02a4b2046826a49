// SPDX-License-Identifier: Apache-2.0

package apiserver

import "testing"

// TestRecordedAnswersAreKubeAPIServers verifies the recordings.
func TestAnswersAsTheRealOneDid(t *testing.T) {
	s := newServer(t)
	for _, sc := range Scenarios() {
		t.Run(sc.FileName(), func(t *testing.T) {
			t.Parallel()
			sc.CompareAnswers(t, sc.ReadRecorded(t), sc.RunScenario(t, s.RESTConfig("compare")))
		})
	}
}
