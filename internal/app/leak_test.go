// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A misplaced or unquoted secret in azure.json appears in no log of the controller or the plan.
func TestMistypedSecretIsNotPrinted(t *testing.T) {
	const secret = "kQ8~3vT.canary-51c0"
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	files := map[string]string{
		"a quote is missing":     `{"subscriptionId":"s","resourceGroup":"rg",aadClientSecret":"` + secret + `"}`,
		"a secret for a key":     "subscriptionId: s\nresourceGroup: rg\n" + secret + ": aadClientSecret\n",
		"a secret for a keyword": "subscriptionId: s\nresourceGroup: rg\naadClientSecret: *" + secret + "\n",
		"a secret in a list":     "subscriptionId: s\nresourceGroup: rg\naadClientSecret: [" + secret + "]\n",
	}
	for name, content := range files {
		dir := t.TempDir()
		file, kubeconfig := filepath.Join(dir, "azure.json"), filepath.Join(dir, "kubeconfig")
		for path, text := range map[string]string{
			file: content, kubeconfig: `{"clusters":[{"name":"c","cluster":{"server":"` + none.URL + `"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`,
		} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		o := valid()
		o.ConfigFile, o.Kubeconfig, o.AzureEndpoint = file, kubeconfig, "http://127.0.0.1:1"
		o.Log = slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug - 8}))
		plan, err := Plan(t.Context(), PlanOptions{Options: o, Files: []string{"-"}, Stdin: strings.NewReader("")})
		fmt.Fprintf(&out, "%v\n%+v\n", err, plan)
		out.WriteString(plan.FormatText(false))
		err = Run(t.Context(), o)
		fmt.Fprintf(&out, "%v\n%#v\n", err, err)
		for i := range len(secret) - 7 {
			if strings.Contains(out.String(), secret[i:i+8]) {
				t.Errorf("%s: %q is told:\n%s", name, secret[i:i+8], out.String())
				break
			}
		}
		if !strings.Contains(out.String(), file) {
			t.Errorf("%s: nothing is said of the file:\n%s", name, out.String())
		}
	}
}
