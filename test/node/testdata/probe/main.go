// Command probe runs in a pod. It sends a request to the API server, as the pod's
// service account, and one to a server at a URL, and prints the responses.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	if len(os.Args) == 3 && os.Args[1] == "say" {
		fmt.Println(os.Args[2])
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	authority, err := os.ReadFile(account + "ca.crt")
	if err != nil {
		fmt.Println(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(authority)
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities}}}
	fmt.Println("API server:", get(client, "https://"+os.Getenv("KUBERNETES_SERVICE_HOST")+":"+os.Getenv("KUBERNETES_SERVICE_PORT")+"/api/v1/namespaces/demo/secrets"))
	fmt.Println("server of the node:", get(client, os.Args[1]))
	err = os.WriteFile("/file", nil, 0o600)
	fmt.Println("writing:", err)
	fmt.Println("done")
	<-stop
}

func get(client *http.Client, url string) string {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	if token, err := os.ReadFile(account + "token"); err == nil {
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	response, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(response.StatusCode, " ", string(body))
}
