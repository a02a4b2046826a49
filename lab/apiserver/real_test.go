// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/lab/apiserver"
)

var rewriteFlag = flag.Bool("rewrite", false, "record the answers of kube-apiserver in testdata/answers")

func TestRecordedAnswersAreKubeAPIServers(t *testing.T) {
	for _, sc := range apiserver.Scenarios() {
		t.Run(sc.FileName(), func(t *testing.T) {
			t.Parallel()
			got := sc.RunScenario(t, kubeAPIServer)
			if !*rewriteFlag {
				sc.CompareAnswers(t, sc.ReadRecorded(t), got)
				return
			}
			text, err := json.MarshalIndent(got, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(filepath.Dir(sc.RecordingPath()), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(sc.RecordingPath(), append(text, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
}
