package cli

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"
	"golang.org/x/term"

	"github.com/fencepost/fencepost/api"
	"github.com/fencepost/fencepost/client"
	"github.com/fencepost/fencepost/cmd/fencepost/internal/settings"
)

func (a *app) loginCommand() *cobra.Command {
	var issuer, clientID string
	var scopes []string
	command := &cobra.Command{
		Use:   "login [CONTEXT]",
		Short: "Keep a server and a token in the configuration file",
		Long: `Keep a server and a bearer token as a context of the configuration file, which
only you can read, and use it from now on.

With --oidc-issuer and --oidc-client-id you sign in at your identity provider
in a browser on any device. Otherwise login reads the token from standard input.`,
		Example: `  fencepost login --url https://locks.example.com <token.txt
  fencepost login prod --url https://locks.example.com \
    --oidc-issuer https://login.example.com --oidc-client-id fencepost-cli`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			name := cmp.Or(first(args), "default")
			file, err := settings.Load()
			if err != nil {
				return err
			}
			server, err := a.settings.Target(file.Contexts[name])
			if err != nil {
				return err
			}
			server.Issuer = cmp.Or(issuer, server.Issuer)
			server.ClientID = cmp.Or(clientID, server.ClientID)
			if server.Token, err = newToken(command.Context(), server, scopes); err != nil {
				return err
			}
			server.TokenFile = ""
			// A token without locks:read may have other scopes.
			err = try(command.Context(), server)
			if err != nil && client.CodeOf(err) != api.Forbidden {
				return err
			}
			file.Contexts[name], file.Current = server, name
			if err := file.Save(); err != nil {
				return err
			}
			say("saved the context %s in %s", name, settings.Path())
			return nil
		},
	}
	command.Flags().StringVar(&issuer, "oidc-issuer", "", "`URL` of the identity provider")
	command.Flags().StringVar(&clientID, "oidc-client-id", "",
		"`ID` of this program at the identity provider")
	command.Flags().StringSliceVar(&scopes, "oidc-scopes", []string{"openid"}, "`scopes` to ask for")
	return command
}

// newToken signs in, or reads a token.
func newToken(ctx context.Context, server settings.Context, scopes []string) (string, error) {
	if server.Issuer != "" && server.ClientID != "" {
		return signIn(ctx, server, scopes)
	}
	line, err := readLine()
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	token := strings.TrimSpace(line)
	if token == "" {
		return "", usage("standard input has no token")
	}
	return token, nil
}

// readLine reads a line of standard input, which a terminal does not show.
func readLine() (string, error) {
	if !isTerminal(os.Stdin) {
		return bufio.NewReader(os.Stdin).ReadString('\n')
	}
	fmt.Fprint(os.Stderr, "Paste the bearer token, then press Enter: ")
	line, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(os.Stderr)
	return string(line), err
}

// try asks the server whether it accepts the token.
func try(ctx context.Context, server settings.Context) error {
	to, err := server.Client(retryLooks)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }() // returns nil
	return to.Call(ctx, http.MethodGet, "/locks?limit=1", nil, nil, nil)
}

// signIn has the user sign in at another device (RFC 8628).
func signIn(ctx context.Context, server settings.Context, scopes []string) (string, error) {
	endpoint, err := discover(ctx, server.Issuer)
	if err != nil {
		return "", err
	}
	config := oauth2.Config{ClientID: server.ClientID, Endpoint: endpoint, Scopes: scopes}
	device, err := config.DeviceAuth(ctx)
	if err != nil {
		return "", fmt.Errorf("sign in at %s: %w", server.Issuer, err)
	}
	fmt.Fprintf(os.Stderr, "Open %s and enter the code %s\n",
		plain(device.VerificationURI), plain(device.UserCode))
	token, err := config.DeviceAccessToken(ctx, device)
	if err != nil {
		return "", fmt.Errorf("sign in at %s: %w", server.Issuer, err)
	}
	identity, _ := token.Extra("id_token").(string)
	if strings.Count(token.AccessToken, ".") != 2 && identity != "" {
		return identity, nil // only the provider can read the access token
	}
	return token.AccessToken, nil
}

// discover reads the endpoints of the identity provider.
func discover(ctx context.Context, issuer string) (oauth2.Endpoint, error) {
	var found struct {
		Device string `json:"device_authorization_endpoint"`
		Token  string `json:"token_endpoint"`
	}
	url := strings.TrimRight(issuer, "/") + "/.well-known/openid-configuration"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return oauth2.Endpoint{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return oauth2.Endpoint{}, err
	}
	defer response.Body.Close()
	err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&found)
	if err != nil || found.Device == "" || found.Token == "" {
		return oauth2.Endpoint{}, fmt.Errorf("%s has no device authorization endpoint", issuer)
	}
	return oauth2.Endpoint{DeviceAuthURL: found.Device, TokenURL: found.Token}, nil
}

func (a *app) contextsCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "contexts",
		Short: "List the servers of the configuration file",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			file, err := settings.Load()
			if err != nil {
				return err
			}
			names := slices.AppendSeq([]string{}, maps.Keys(file.Contexts))
			slices.Sort(names)
			return a.print(names, names, func(w *tabwriter.Writer) {
				row(w, "CURRENT", "CONTEXT", "URL")
				for _, name := range names {
					mark := ""
					if name == file.Current {
						mark = "*"
					}
					row(w, mark, name, file.Contexts[name].URL)
				}
			})
		},
	}
	command.AddCommand(
		changeContexts("use", "Use a context from now on", func(file *settings.File, name string) {
			file.Current = name
		}),
		changeContexts("delete", "Delete a context and its token",
			func(file *settings.File, name string) {
				if delete(file.Contexts, name); file.Current == name {
					file.Current = ""
				}
			}),
	)
	return command
}

func changeContexts(name, short string, change func(*settings.File, string)) *cobra.Command {
	return &cobra.Command{
		Use: name + " CONTEXT", Short: short, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := settings.Load()
			if err != nil {
				return err
			}
			if _, known := file.Contexts[args[0]]; !known {
				return fmt.Errorf("there is no context %q", args[0])
			}
			change(&file, args[0])
			return file.Save()
		},
	}
}
