//! Inputs to begin with: what the CLI was recorded to write, and conversations that happen every day.

/// One input for each kind of frame that the CLI was recorded to write, and some lines that are none.
pub fn codec() -> Vec<Vec<u8>> {
    let frames = include_bytes!("../../crates/protocol/tests/fixtures/frames.jsonl");
    let control = include_bytes!("../../crates/protocol/tests/fixtures/control.jsonl");
    let lines = frames
        .split(|byte| *byte == b'\n')
        .chain(control.split(|byte| *byte == b'\n'));
    // Long ones teach nothing more and make every input that is made of them slow.
    let lines = lines.filter(|line| (1..=1500).contains(&line.len()));
    let mut inputs: Vec<Vec<u8>> = lines.map(|line| [b"\x03\x07", line].concat()).collect();
    let odd: [&[u8]; 8] = [
        b"\x03\x01{\"type\":\"keep_alive\"}{\"type\":\"keep_alive\"} \r\n\n[1]\n7\nnot json\n",
        b"\x00\x03{\"type\":\"keep_alive\"}\n{}\n{\"a\":1}\n",
        b"\x01\x04{\"type\":\"user\",\"bad\":\"\xff\"}\n{\"type\":\"user\",\"half\":\"\\ud83d\"}\n",
        b"\x03\x05{\"type\":\"result\",\"total_cost_usd\":1e400,\"num_turns\":-1}\n",
        b"\x03\x06{\"subtype\":\"init\",\"type\":\"system\",\"type\":\"user\"}\n",
        b"\x03\x02{\"type\":\"control_request\",\"request_id\":7,\"request\":{\"subtype\":\"can_use_tool\",\"input\":[[[[]]]]}}\n",
        b"\x03\x08{\"type\":\"\\u0073ystem\",\"subtype\":\"in\\u0069t\"}\n",
        b"\x02\x09\xef\xbb\xbf{\"type\":\"keep_alive\"}\xe2\x80\xa8{\"type\"",
    ];
    inputs.extend(odd.map(<[u8]>::to_vec));
    inputs
}

/// What clients of a host send: bodies with events, cursors, schedules and addresses, other bodies.
pub fn host() -> Vec<Vec<u8>> {
    const ID: &str = "11111111-1111-4111-8111-111111111111";
    let events = [
        format!(r#"{{"type":"user","uuid":"{ID}","message":{{"role":"user","content":"hi"}}}}"#),
        format!(r#"{{ "type":"user", "uuid":"{ID}","message":{{"content":[{{"type":"text","text":"\ud83d"}}]}},"n":1e400}}"#),
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"set_model","model":"opus"}}"#.to_owned(),
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"interrupt"}}"#.to_owned(),
        r#"{"type":"control_cancel_request","request_id":"r"}"#.to_owned(),
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{}}}}"#.to_owned(),
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"no"}}"#.to_owned(),
        format!(r#"{{"type":"user","uuid":"{ID}","type":"control_response"}}"#),
        r#"{"type":"control_respons\u0065","response":{"request_id":"r","error":"no"}}"#.to_owned(),
    ];
    let mut inputs: Vec<String> = events
        .iter()
        .map(|event| format!(r#"0{{"session_id":"s","events":[{{"payload":{event}}}]}}"#))
        .collect();
    let two = format!(r#"{{"payload": {} }},{{"payload":{}}}"#, events[0], events[5]);
    inputs.push(format!(r#"0{{"events":[{two}]}}"#));
    inputs.extend(
        [
            "1",
            "10",
            "142",
            "1-1",
            "1+1",
            "1 1",
            "118446744073709551616",
            "100012",
        ]
        .map(str::to_owned),
    );
    for cron in [
        "0 3 * * *",
        "*/5 8-18 * * MON-FRI",
        "0 0 L * *",
        "0 0 15W * *",
        "0 0 * * 5#L",
        "0 0 30 2 *",
        "@daily",
        "0 0 29 2 +MON",
        "30 2 * 3,10 7",
        "59 23 31 12 ?",
    ] {
        for zone in ["UTC", "Europe/Berlin", "Australia/Lord_Howe"] {
            inputs.push(format!("2{cron}\n{zone}\n1774742400000"));
        }
    }
    inputs.extend(
        [
            "https://example.com/hook?x=1",
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://[::ffff:7f00:1]/",
            "http://example.com/",
            "https://user:word@example.com/",
            "https://example.com:99999/",
            "https://ex\u{e4}mple.com/%2e%2e/",
        ]
        .map(|url| format!("2{url}")),
    );
    inputs.extend(
        [
            r#"{"cwd":"/srv","title":"t","permission_mode":"plan"}"#,
            r#"{"label":"l","scopes":["read","admin"],"expires_at":1}"#,
            r#"{"code":"c"}"#,
            r#"{"url":"https://example.com/","events":["turn_result"],"content":true}"#,
            r#"{"session_id":"s","cron":"@daily","time_zone":"UTC","prompt":"p","missed":"skip"}"#,
        ]
        .map(|body| format!("3{body}")),
    );
    inputs.into_iter().map(String::into_bytes).collect()
}

/// Conversations, as lists of steps.
pub fn session() -> Vec<Vec<u8>> {
    // What the program does is even, what the peer does is odd; 0 lets both get on with it.
    const PROMPT: u8 = 32;
    const QUEUE: u8 = 2;
    const STEER: u8 = 4;
    const NOW: u8 = 6;
    const DROP_TURN: u8 = 8;
    const TEXT: u8 = 10;
    const NEXT: u8 = 12;
    const CANCEL: u8 = 14;
    const INTERRUPT: u8 = 16;
    const INTERRUPT_ALL: u8 = 18;
    const REQUEST: u8 = 20;
    const GIVE_UP: u8 = 22;
    const RUN_END: u8 = 24;
    const READERS: u8 = 26;
    const WAIT: u8 = 28;
    const CLOSE: u8 = 30;
    const LIFE: u8 = 1;
    const INIT: u8 = 3;
    const RESULT: u8 = 5;
    const SAID: u8 = 7;
    const PARTIAL: u8 = 9;
    const ASK: u8 = 11;
    const WITHDRAW: u8 = 13;
    const ANSWER: u8 = 15;
    const STATE: u8 = 17;
    const TASK: u8 = 19;
    const RAW: u8 = 21;
    const NEWLINE: u8 = 23;
    const END_OF_OUTPUT: u8 = 25;
    const EXIT: u8 = 27;
    const READS: u8 = 29;
    const NOVEL: u8 = 31;
    let turn = |prompt: u8| {
        let number = 4 * prompt + 1;
        vec![
            LIFE, prompt, 0, LIFE, prompt, 1, INIT, number, PARTIAL, 5, SAID, 0, number, LIFE, prompt, 2,
            RESULT, 0, number, 0,
        ]
    };
    let of = |parts: &[&[u8]]| parts.concat();
    let mut inputs = vec![
        of(&[&[0, PROMPT, 0, NEXT, 0], &turn(0), &[STATE, 0, 0]]),
        of(&[
            &[0, PROMPT, TEXT, 0, PROMPT, TEXT, 0, RUN_END, 0],
            &turn(0),
            &turn(1),
            &[STATE, 0, 0, 1],
        ]),
        of(&[&[
            4, PROMPT, PROMPT, 0, INIT, 0, SAID, 0, 0, RESULT, 0, 0, 0, RESULT, 0, 0, 0, 2,
        ]]),
        of(&[&[
            0, PROMPT, STEER, 0, LIFE, 0, 1, LIFE, 1, 1, INIT, 1, LIFE, 1, 2, LIFE, 0, 2, RESULT, 0, 2, 0,
        ]]),
        of(&[
            &[
                0, PROMPT, 0, LIFE, 0, 1, INIT, 1, QUEUE, 0, INTERRUPT, 0, ANSWER, 1, 1, RESULT, 3, 1, 0,
            ],
            &turn(1),
        ]),
        of(&[&[
            0,
            PROMPT,
            QUEUE,
            0,
            INTERRUPT_ALL,
            0,
            LIFE,
            1,
            3,
            ANSWER,
            1,
            1,
            RESULT,
            2,
            1,
            0,
        ]]),
        of(&[&[
            0, PROMPT, 0, LIFE, 0, 1, NOW, 0, RESULT, 2, 1, LIFE, 1, 1, INIT, 5, RESULT, 0, 5, 0,
        ]]),
        of(&[&[0, PROMPT, 0, CANCEL, 0, 0, ANSWER, 1, 1, LIFE, 0, 3, 0]]),
        of(&[&[
            0, PROMPT, 0, CANCEL, 0, 0, ANSWER, 1, 2, LIFE, 0, 1, 0, ANSWER, 2, 1, RESULT, 3, 1, 0,
        ]]),
        of(&[&[
            0, REQUEST, 12, REQUEST, 3, 0, GIVE_UP, 0, 0, ANSWER, 1, 1, ANSWER, 1, 1, ANSWER, 0, 3, WAIT, 17,
            0,
        ]]),
        of(&[&[
            0, PROMPT, 0, INIT, 1, ASK, 0, 0, ASK, 1, 80, ASK, 1, 80, 0, WITHDRAW, 1, 0, ASK, 2, 4, ASK, 3,
            6, WAIT, 8, RESULT, 0, 1, 0,
        ]]),
        of(&[&[
            0, READERS, 0, READERS, 1, TASK, 0, INIT, 0, SAID, 0, 0, TASK, 7, RESULT, 8, 0, READERS, 4,
            READERS, 5, READERS, 2, READERS, 3, 0,
        ]]),
        of(&[&[
            2, READERS, 0, PROMPT, 0, INIT, 1, NOVEL, 90, NOVEL, 90, PARTIAL, 200, NOVEL, 90, RESULT, 0, 1,
            DROP_TURN, 0, 0,
        ]]),
        of(&[&[
            0,
            PROMPT,
            0,
            RAW,
            3,
            b'{',
            b'x',
            b'}',
            b' ',
            NEWLINE,
            RAW,
            0,
            0xff,
            END_OF_OUTPUT,
            WAIT,
            13,
            0,
        ]]),
        of(&[&[1, PROMPT, REQUEST, 15, ASK, 0, 0, EXIT, 1, 0, PROMPT, 0]]),
        of(&[&[
            1, READS, 1, PROMPT, REQUEST, 15, ASK, 0, 80, CLOSE, 0, WAIT, 14, READS, 0, 2,
        ]]),
        of(&[&[0, PROMPT, QUEUE, CLOSE, 0, EXIT, 0, 0]]),
    ];
    inputs.push(of(&[&[
        3, PROMPT, 0, LIFE, 0, 4, 0, PROMPT, 0, LIFE, 1, 5, 0, PROMPT, 0, LIFE, 2, 6, WAIT, 17, 0, 1,
    ]]));
    inputs
}

/// Inputs of the state machine: the number of steps after the end, then three bytes for each step. The steps are those of `act` in the
/// laws.
pub fn core() -> Vec<Vec<u8>> {
    const PROMPT: u8 = 0;
    const SEND: u8 = 2;
    const TAKE_BACK: u8 = 4;
    const GATE: u8 = 6;
    const INTERRUPT: u8 = 8;
    const CONFIRM: u8 = 10;
    const REQUEST: u8 = 11;
    const REPLY: u8 = 12;
    const CLI_REQUEST: u8 = 13;
    const WITHDRAW: u8 = 15;
    const DECIDE: u8 = 16;
    const LIFECYCLE: u8 = 18;
    const INIT: u8 = 19;
    const ASSISTANT: u8 = 20;
    const RESULT: u8 = 21;
    const FOREIGN_RESULT: u8 = 22;
    const WAIT: u8 = 23;
    let of = |late: u8, steps: &[[u8; 3]]| [&[late][..], &steps.concat()].concat();
    vec![
        of(
            0,
            &[
                [PROMPT, 0, 0],
                [SEND, 0, 0],
                [INIT, 0, 1],
                [ASSISTANT, 0, 0],
                [RESULT, 0, 1],
            ],
        ),
        of(
            1,
            &[
                [INIT, 0, 0],
                [PROMPT, 0, 1],
                [PROMPT, 1, 1],
                [SEND, 0, 0],
                [LIFECYCLE, 0, 1],
                [LIFECYCLE, 1, 1],
                [RESULT, 1, 1],
                [FOREIGN_RESULT, 0, 0],
            ],
        ),
        of(
            0,
            &[
                [CLI_REQUEST, 0, 0],
                [DECIDE, 0, 0],
                [CLI_REQUEST, 0, 0],
                [DECIDE, 0, 2],
                [WITHDRAW, 0, 0],
                [DECIDE, 1, 1],
            ],
        ),
        of(
            2,
            &[
                [PROMPT, 2, 0],
                [GATE, 0, 0],
                [SEND, 0, 0],
                [GATE, 0, 0],
                [SEND, 0, 0],
                [INTERRUPT, 0, 0],
                [WAIT, 3, 0],
                [CONFIRM, 0, 0],
                [TAKE_BACK, 2, 0],
            ],
        ),
        of(
            0,
            &[
                [REQUEST, 0, 0],
                [REPLY, 0, 1],
                [REQUEST, 0, 0],
                [REPLY, 1, 0],
                [REPLY, 1, 1],
            ],
        ),
    ]
}
