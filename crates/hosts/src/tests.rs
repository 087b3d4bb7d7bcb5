//! Packets between hosts, with and without cuts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::Duration;

use super::*;

const PORT: u16 = 7000;

/// Two hosts, unless this process may not make them.
fn two_hosts() -> Option<(Network, [Host; 2])> {
    let Ok(mut network) = Network::make() else {
        // As the testkit does, which uses this crate.
        writeln!(
            std::io::stdout(),
            "\ndid nothing: no network of its own can be made"
        )
        .unwrap();
        return None;
    };
    let hosts = [(); 2].map(|()| network.add_host().unwrap());
    Some((network, hosts))
}

/// Runs a Python program on a host, which prints a line once it has begun.
fn begin(host: &Host, program: &str) -> (Child, BufReader<ChildStdout>) {
    let mut python = host.command("python3");
    python.args(["-c", program]).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    (child, out)
}

/// What a host reads from a port of another one.
fn fetched(host: &Host, from: &Host) -> String {
    let address = from.address();
    let read = format!("timeout 2 bash -c 'cat < /dev/tcp/{address}/{PORT}'");
    let output = host.command("sh").args(["-c", &read]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_connection_needs_both_directions_and_comes_back() {
    let Some((network, [one, other])) = two_hosts() else {
        return;
    };
    let serve = format!(
        "import socket\n\
         s = socket.create_server(('{}', {PORT}))\n\
         print(flush=True)\n\
         while True: s.accept()[0].sendall(b'here')",
        one.address()
    );
    let (mut server, _out) = begin(&one, &serve);
    assert_eq!(fetched(&other, &one), "here");
    for link in [
        Link::Between(&one, &other),
        Link::Between(&other, &one),
        Link::Into(&one),
        Link::OutOf(&one),
    ] {
        network.cut(link).unwrap();
        assert_eq!(fetched(&other, &one), "", "{link:?}");
        network.mend(link).unwrap();
        assert_eq!(fetched(&other, &one), "here", "{link:?}");
    }
    // What this process starts is on the network, and is not cut off.
    network.cut(Link::Between(&one, &other)).unwrap();
    let address = SocketAddr::from((one.address(), PORT));
    let connect = move || TcpStream::connect_timeout(&address, Duration::from_secs(2));
    thread::spawn(connect).join().unwrap().unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
}

/// Whether a single packet arrives.
fn arrives(from: &Host, to: &Host) -> bool {
    let wait = format!(
        "import socket\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         s.bind(('{}', {PORT})); s.settimeout(1)\n\
         print(flush=True)\n\
         try: print(s.recv(9).decode())\n\
         except TimeoutError: pass",
        to.address()
    );
    let (mut receiver, mut out) = begin(to, &wait);
    let send = format!("echo -n here > /dev/udp/{}/{PORT}", to.address());
    let sent = from.command("bash").args(["-c", &send]).status().unwrap();
    assert!(sent.success());
    let mut received = String::new();
    out.read_to_string(&mut received).unwrap();
    receiver.wait().unwrap();
    received == "here\n"
}

#[test]
fn a_cut_is_of_one_direction() {
    let Some((network, [one, other])) = two_hosts() else {
        return;
    };
    assert!(arrives(&one, &other) && arrives(&other, &one));
    for link in [
        Link::Between(&one, &other),
        Link::OutOf(&one),
        Link::Into(&other),
    ] {
        network.cut(link).unwrap();
        assert!(!arrives(&one, &other), "{link:?}");
        assert!(arrives(&other, &one), "{link:?}");
        network.mend(link).unwrap();
    }
}
